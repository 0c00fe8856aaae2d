"""Common parts of files of a zoo."""

width = 16
