"""Gradient accumulation. Owns: `keras` and `torch`. Does not know about: how many steps."""
