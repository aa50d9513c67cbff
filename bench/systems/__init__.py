"""One module per system under measurement; each is run as a process of its own."""
