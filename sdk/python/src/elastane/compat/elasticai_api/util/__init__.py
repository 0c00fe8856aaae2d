"""Published helpers. Owns: their names. Does not know about: workers."""
