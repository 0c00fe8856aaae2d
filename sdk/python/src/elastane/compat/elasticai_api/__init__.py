"""Published modules for training loops of one's own. Owns: their names, and refusing them when they are
called. Does not know about: the protocol that they would speak."""
