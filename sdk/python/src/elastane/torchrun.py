"""`torchrun` whose pods meet at the server, so that none of them is one that the others cannot lose.

Owns: how PyTorch finds the rendezvous, and when it is the default. Does not know about: how pods
meet (rendezvous.py).

The server sets `PET_RDZV_BACKEND=c10d`, because it cannot know the packages of an image, and beside
it `ELASTANE_RDZV_BACKEND=elastane` if the user has chosen no rendezvous. PyTorch 2.5 and later
loads this module by the entry point of the installed wheel before it reads its options, and so
makes this rendezvous the default. Earlier versions know no such entry points; they need this module
in place of the program:

    python3 -m elastane.torchrun train.py
"""

import logging
import os

from .channel import VARIABLE

NAME = "elastane"
_PYTORCHS_OWN = "c10d"
# A variable of the server, and the one from which `torchrun` reads its option.
_PREFERRED, _OPTION = "ELASTANE_RDZV_BACKEND", "PET_RDZV_BACKEND"

log = logging.getLogger(__name__)


def create(parameters):
    """The rendezvous of these `RendezvousParameters` of PyTorch."""
    # Not before PyTorch calls this: PyTorch looks for entry points while it is imported itself.
    from .rendezvous import ServerRendezvous, is_used

    if _is_default():
        reason = _difference(parameters)
        if reason is None and is_used(parameters):
            reason = "another torchrun of this pod has met at the server"
        if reason is not None:
            return _pytorchs_own(parameters, reason)
    return ServerRendezvous(parameters)


def handler():
    """Target of the entry point of the group `torchrun.handlers`."""
    choose()
    return create


def choose():
    """Makes this rendezvous the default of `torchrun`, if the server leaves the choice to the
    image."""
    if _is_default():
        os.environ[_OPTION] = NAME


def _is_default():
    # The programs of a `torchrun` inherit the option as it was chosen.
    is_open = os.environ.get(_OPTION) in (_PYTORCHS_OWN, NAME)
    return is_open and os.environ.get(_PREFERRED) == NAME and VARIABLE in os.environ


def _difference(parameters):
    """Names the option by which the command line asks for another rendezvous than that of the
    pods."""
    nodes = {f"{parameters.min_nodes}:{parameters.max_nodes}"}
    if parameters.min_nodes == parameters.max_nodes:
        nodes.add(str(parameters.min_nodes))
    for option, variable, values in (
        ("--rdzv_endpoint", "PET_RDZV_ENDPOINT", {parameters.endpoint}),
        ("--rdzv_id", "PET_RDZV_ID", {parameters.run_id}),
        ("--nnodes", "PET_NNODES", nodes),
    ):
        if os.environ.get(variable) not in values:
            return f"{option} is not that of the pods of the workload"
    return None


def _pytorchs_own(parameters, reason):
    from torch.distributed.elastic.rendezvous import rendezvous_handler_registry

    log.warning("the rendezvous is %s, in the first pod: %s", _PYTORCHS_OWN, reason)
    parameters.backend = _PYTORCHS_OWN
    return rendezvous_handler_registry.create_handler(parameters)


def main():
    from torch.distributed.elastic.rendezvous import rendezvous_handler_registry
    from torch.distributed.run import main as run

    # The function that an entry point has registered, not the one of `__main__`.
    from elastane import torchrun as known

    rendezvous_handler_registry.register(NAME, known.create)
    known.choose()
    run()


if __name__ == "__main__":
    main()
