"""The words of Holdfast as frozen values."""
