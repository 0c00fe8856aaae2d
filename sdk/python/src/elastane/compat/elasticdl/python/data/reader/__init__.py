"""Published readers. Owns: their names. Does not know about: files (`elastane.readers`)."""
