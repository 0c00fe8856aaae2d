"""The rendezvous of pods that `torchrun` starts, at the server.

Owns: what PyTorch asks of a rendezvous, and the store of a world. Does not know about: who is in a world,
which the server decides by the pods that run, and what the pods exchange in the store.

The first pod of each world opens a store, which is of this world alone. When a pod is gone, the first one
included, the others begin another world with another store.
"""

import logging
import os
import socket
import sys
import threading
import time
from datetime import timedelta

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous import api

from .channel import VARIABLE, _ask
from .torchrun import NAME

log = logging.getLogger(__name__)

# Between two questions: of a pod that waits for the others, and of one that computes.
_WAITING_S = 0.1
_COMPUTING_S = 1.0
_ANSWER_S = 5.0
# How often the end of the script is sent to a server that does not answer.
_DONE_TRIES = 20
# How long a pod looks for the store of a world, whose first pod may be gone.
_STORE_S = 30
# How long a first world waits for more pods, and a pod for a world, unless `--rdzv_conf` says otherwise.
_LAST_CALL_S = 30
_JOIN_S = 600


def is_used(parameters):
    """True if another `torchrun` of this run has met at the server and has ended well."""
    try:
        answer = ServerRendezvous(parameters)._say({})
        return answer is not None and bool(answer.get("used"))
    except (ValueError, api.RendezvousError):
        # A server that is away or refuses is an error of the rendezvous itself, which names it.
        return False


class ServerRendezvous(api.RendezvousHandler):
    """Meets the other pods of the workload at the server."""

    def __init__(self, parameters):
        self._channel = os.environ.get(VARIABLE)
        if not self._channel:
            raise ValueError(
                f"{VARIABLE} is not set: --rdzv_backend {NAME} is for pods of a server; "
                "use c10d elsewhere"
            )
        self._run_id = parameters.run_id
        self._limits = {
            "min": parameters.min_nodes,
            "max": parameters.max_nodes,
            "unit": _whole(parameters, "node_unit", 1),
            "wait_ms": 1000 * _whole(parameters, "last_call_timeout", _LAST_CALL_S),
        }
        self._join_s = _whole(parameters, "join_timeout", _JOIN_S)
        local = getattr(parameters, "local_addr", None) or os.environ.get("PET_LOCAL_ADDR")
        self._address = local or socket.getfqdn()
        # The last world that this pod was in.
        self._seat = None
        # Pods of a world need the store of its first pod as long as they compute.
        self._store = None
        self._waits = True
        self._changed = False
        self._over = False
        # Errors of the server, and of the store of the last world.
        self._silence = None
        self._unusable = None
        self._lock = threading.Lock()
        self._looks = None
        self._ended = threading.Event()

    def get_backend(self):
        return NAME

    def get_run_id(self):
        return self._run_id

    def next_rendezvous(self):
        with self._lock:
            self._waits, self._changed, self._store = True, False, None
        until = time.monotonic() + self._join_s
        store, self._unusable = None, None
        while time.monotonic() < until:
            world = self._arrive(store)
            if world is not None and world.get("store"):
                found = self._enter(world, store)
                if found is not None:
                    return found
            elif world is not None and world.get("rank") == 0:
                if _generation(store) != world["generation"]:
                    store = (world["generation"], self._open())
                    continue
            time.sleep(_WAITING_S)
        advice = "raise join_timeout in --rdzv_conf, or ask for fewer by --nnodes"
        raise api.RendezvousTimeoutError(
            f"{self._limits['min']} pods did not meet within {self._join_s} s: "
            f"{self._silence or self._unusable or advice}"
        )

    def num_nodes_waiting(self):
        return int(self._changed)

    def is_closed(self):
        return self._over

    def set_closed(self):
        self._over = True
        # A server that is restarted meanwhile is there again soon.
        for _ in range(_DONE_TRIES):
            if self._say({"done": True}) is not None:
                return
            time.sleep(_COMPUTING_S)
        log.warning("the others do not know that the script has ended well: %s", self._silence)

    def shutdown(self):
        self._ended.set()
        # `torchrun` calls this while the error passes with which it ends: then the others go on.
        if sys.exc_info()[0] is not None:
            self._leave()
        elif self._seat is not None:
            self.set_closed()
        return True

    def _leave(self):
        """The run may go on without this program."""
        try:
            self._say({"leaves": True})
        except api.RendezvousStateError as error:
            log.warning("the others do not know that this pod leaves them: %s", error)

    def _arrive(self, store):
        """Waits for the others. None: the server does not answer, or there is nothing to do yet."""
        request = {"arrives": True}
        if store is not None:
            generation, opened = store
            address = f"{self._address}:{opened.port}"
            request["store"] = {"generation": generation, "address": address}
        world = self._say(request)
        if world is not None and world.get("over"):
            self._over = True
            if self._seat is None:
                # A pod that comes too late has nothing to do, and has not failed.
                log.warning("the script has ended well in another pod: this one ends")
                # Another `torchrun` of this pod meets elsewhere, as it does in the other pods.
                self._say({"done": True})
                raise SystemExit(0)
            raise api.RendezvousClosedError("the script has ended well in another pod")
        return world

    def _open(self):
        return _store("localhost", 0, True)

    def _enter(self, world, store):
        """Goes to the store of a world in which all have arrived. None: it is not there any more."""
        generation, rank, size = (world[name] for name in ("generation", "rank", "size"))
        self._seat = {"generation": generation, "rank": rank, "size": size}
        host, _, port = world["store"].rpartition(":")
        try:
            if rank > 0:
                opened = _store(host, int(port), False)
            elif _generation(store) == generation:
                opened = store[1]
            else:
                raise RuntimeError("it was that of an earlier world")
            found = self._found(opened, rank, size)
        except (OSError, RuntimeError) as error:
            self._unusable = f"the store of a world at {world['store']} cannot be used: {error}"
            log.warning("%s", self._unusable)
            return None
        with self._lock:
            self._store, self._waits = opened, False
        if self._looks is None:
            self._looks = threading.Thread(target=self._look, daemon=True)
            self._looks.start()
        log.info("world %s: rank %s of %s", generation, rank, size)
        return found

    def _found(self, store, rank, size):
        # PyTorch before 2.4 looks for the address of the first process itself.
        if not hasattr(api, "RendezvousInfo"):
            return store, rank, size
        if rank == 0:
            store.set("MASTER_ADDR", self._address)
            store.set("MASTER_PORT", str(_free_port()))
        address, port = (store.get(name).decode() for name in ("MASTER_ADDR", "MASTER_PORT"))
        info = api.RendezvousStoreInfo(master_addr=address, master_port=int(port))
        return api.RendezvousInfo(store, rank, size, info)

    def _look(self):
        """Asks whether the world has changed, while the processes of this pod compute."""
        while not self._ended.wait(_COMPUTING_S):
            with self._lock:
                if self._waits:
                    continue
                try:
                    world = self._say({})
                except api.RendezvousStateError as error:
                    log.warning("whether the world has changed is not known: %s", error)
                    continue
                if world is not None:
                    self._changed = bool(world.get("changed"))

    def _say(self, what):
        """The answer of the server; None if it does not answer, as while it is restarted."""
        request = {**self._limits, **what}
        if self._seat is not None:
            request["of"] = self._seat
        try:
            answer = _ask(self._channel, {"meet": request}, None, patience_s=_ANSWER_S)
        except (OSError, ValueError) as error:
            if self._silence is None:
                log.warning("the server does not answer at %s: %s", self._channel, error)
            self._silence = f"the server does not answer at {self._channel}: {error}"
            return None
        self._silence = None
        if answer.get("ok") is not True:
            raise api.RendezvousStateError(f"the server refuses: {answer.get('why')}")
        return answer.get("world") or {}


def _store(host, port, is_first):
    # As PyTorch's own: a build of it without libuv, such as Debian's, needs this variable. Before 2.4
    # that was the default.
    off = hasattr(api, "RendezvousInfo") and os.environ.get("USE_LIBUV") == "0"
    more = {"use_libuv": False} if off else {}
    return TCPStore(
        host, port, None, is_first, timedelta(seconds=_STORE_S), wait_for_workers=False, **more
    )


def _generation(store):
    return None if store is None else store[0]


def _whole(parameters, name, default):
    """A whole number of `--rdzv_conf`."""
    value = parameters.get(name)
    try:
        number = default if value is None else int(value)
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError(f"{name} in --rdzv_conf is {value!r}; it is a whole number from 1 on")
    return number


def _free_port():
    with socket.socket() as found:
        found.bind(("", 0))
        return found.getsockname()[1]
