"""Where the root key of an encrypted store comes from."""
