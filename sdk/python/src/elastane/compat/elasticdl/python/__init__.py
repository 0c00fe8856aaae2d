"""Published name; see `elasticdl`."""
