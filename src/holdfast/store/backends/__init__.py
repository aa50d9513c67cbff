"""Rows and bytes on a disk or in memory; they know names, not checkpoints."""
