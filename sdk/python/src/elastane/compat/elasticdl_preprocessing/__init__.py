"""Published layers that prepare features. Owns: their names. Does not know about: models."""
