"""The client at the path where the published document types it.

It is the program `elasticdl` of the PATH, with the same flags.
"""

import os
import sys

try:
    os.execvp("elasticdl", ["elasticdl", *sys.argv[1:]])
except FileNotFoundError:
    sys.exit("elasticdl is not on the PATH: `make install` puts it there")
