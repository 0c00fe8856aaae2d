"""Published names of readers. Owns: the names. Does not know about: files."""
