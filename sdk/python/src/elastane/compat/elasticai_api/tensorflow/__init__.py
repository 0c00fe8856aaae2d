"""Published names for TensorFlow. Owns: the names. Does not know about: TensorFlow."""
