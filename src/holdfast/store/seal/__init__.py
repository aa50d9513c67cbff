"""What binds stored bytes to their place: hashes of open bytes, or seals made with keys."""
