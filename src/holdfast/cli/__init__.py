"""The command line: the library's words, typed."""
