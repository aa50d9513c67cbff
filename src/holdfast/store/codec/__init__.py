"""Values and stored bodies as bytes, and back."""
