"""Which saving policy to choose and what it costs: an exact model, its simulation, a ranking."""
