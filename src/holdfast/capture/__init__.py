"""Capture: what a moment of a run is made of."""
