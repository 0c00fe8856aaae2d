"""Modules under the names that published model files import. Owns: those names. Does not know
about: the worker; it puts this folder on the path before it loads a model."""
