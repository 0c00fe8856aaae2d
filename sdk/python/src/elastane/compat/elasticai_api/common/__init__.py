"""Published names for all frameworks. Owns: the names. Does not know about: frameworks."""
