"""Imports each published name, uses those that are refused, and prints for each what it is: given,
or the message of the refusal.

    python3 import_published.py NAMES.json
"""

import importlib
import json
import sys

from elastane import contract
from elastane.refused import NotHereError

sys.path.insert(0, contract.compatibility_path())


def is_refused(found):
    """True for a class that only refuses to be called."""
    made = getattr(found, "__init__", None)
    return isinstance(found, type) and made.__qualname__ == "refused.<locals>.__init__"


def state(module, name):
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        if is_refused(found):
            found("anything", of=1)
    except NotHereError as error:
        return str(error)
    return "given"


with open(sys.argv[1], encoding="utf-8") as names:
    published = json.load(names)
print(json.dumps({of: {name: state(of, name) for name in names} for of, names in published.items()}))
