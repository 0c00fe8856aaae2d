"""Published feature columns. Owns: their name. Does not know about: what they compute."""
