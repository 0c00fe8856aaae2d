"""Published modules for training loops of one's own. Owns: their names. Does not know about: how
records and gradients are shared (`elastane.shards`)."""
