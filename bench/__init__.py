"""What Holdfast costs, measured in one run beside its peers and the disk: `python -m bench`."""
