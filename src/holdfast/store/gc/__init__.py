"""What nothing needs any more is taken away; what anything may need is not."""
