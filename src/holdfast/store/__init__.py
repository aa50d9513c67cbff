"""Where runs are kept: nothing half-written is ever visible."""
