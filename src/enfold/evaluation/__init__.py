"""Evaluation: measures which content survives a compression, with known questions."""
