"""Published helpers of models. Owns: their names. Does not know about: models."""
