"""What can be kept of a damaged store, and a new database that holds it."""
