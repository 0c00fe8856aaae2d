"""Published modules for custom training loops. Owns: their names. Does not know about: how
records and gradients are shared (`elastane.shards`)."""
