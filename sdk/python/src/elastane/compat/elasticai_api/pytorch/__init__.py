"""Published names for PyTorch. Owns: the names. Does not know about: PyTorch."""
