"""Judgement without hands: pure decisions over the model."""
