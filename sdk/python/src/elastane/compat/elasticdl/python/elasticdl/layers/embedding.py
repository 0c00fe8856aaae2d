"""Published name of `elasticdl.layers`."""

import elasticdl.layers  # noqa: F401  which says what is missing
