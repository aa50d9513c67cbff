"""The demo: an agent, the world it changes, and whoever kills it."""
