"""Drills: an agent under injected faults, and what its promises came to."""
