"""Published modules of the worker. Owns: their names. Does not know about: the worker."""
