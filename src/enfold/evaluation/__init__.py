"""Evaluation: what survives a compression, measured on conversations with known questions."""
