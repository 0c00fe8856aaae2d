"""Published modules of data. Owns: their names. Does not know about: files (`elastane.readers`)."""
