"""`torchrun` whose pods meet at the server, so that none of them is one that the others cannot lose.

Owns: how PyTorch finds the rendezvous. Does not know about: how pods meet (rendezvous.py).

The server takes it for such a training by `-e PET_RDZV_BACKEND=elastane`, which `torchrun` reads too. PyTorch
2.5 and later finds the rendezvous by the installed wheel. Earlier ones need this module in place of the
program:

    python3 -m elastane.torchrun train.py
"""

NAME = "elastane"


def create(parameters):
    """The rendezvous of these `RendezvousParameters` of PyTorch."""
    # Not before PyTorch calls this: PyTorch looks for entry points while it is imported itself.
    from .rendezvous import ServerRendezvous

    return ServerRendezvous(parameters)


def handler():
    """Target of the entry point of the group `torchrun.handlers`."""
    return create


def main():
    from torch.distributed.elastic.rendezvous import rendezvous_handler_registry
    from torch.distributed.run import main as run

    # The function that an entry point has registered, not the one of `__main__`.
    from elastane.torchrun import create as known

    rendezvous_handler_registry.register(NAME, known)
    run()


if __name__ == "__main__":
    main()
