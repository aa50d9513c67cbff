"""Readers of what happened."""
