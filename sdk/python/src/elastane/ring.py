"""All-reduce in a ring: each worker sends to the next, and receives from the one before.

Owns: the order in which parts of a buffer go round, and that a call ends when a worker is gone. Does
not know about: who may connect (`links`), models, the master.

Each call is made by all workers of a ring. Sending and receiving go on at the same time in one
thread, so no buffer is too large for it. A call ends with Broken in every worker once a connection of
the ring is closed: one that dies closes its own, and who gets Broken closes its own in turn.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from typing import Callable, List, Optional, Tuple

import numpy as np

from .links import Listener, Refused, Unlinked, connect

# Sums are made in parts that stay in the cache.
_SUM_FLOATS = 64 * 1024
_PART_BYTES = 1024 * 1024
_MESSAGE_BYTES_MAX = 64 * 1024 * 1024
_LENGTH = struct.Struct(">Q")
_NOTHING = memoryview(b"")
# That it does not go on at the moment, without encryption and with it.
_WAITS = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
# Milliseconds between two checks for an abort, if nothing arrives.
_LOOK_MS = 1_000


class Broken(Exception):
    """A worker of the ring is gone, or the ring was aborted."""


class Unreached(Broken):
    """The next worker of the ring cannot be connected to."""


class Ring:
    """The connections of a worker to its neighbours, in one generation of the world."""

    def __init__(
        self,
        generation: int,
        rank: int,
        size: int,
        neighbours: Optional[Tuple[socket.socket, socket.socket]] = None,
    ) -> None:
        """`neighbours`: the one before and the next, for a ring of more than one."""
        self.generation, self.rank, self.size = generation, rank, size
        self._neighbours = neighbours
        self._is_aborted = False
        self._scratch = np.empty(0, np.float32)
        for one in neighbours or ():
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def abort(self) -> None:
        """Ends the call that is under way, and all later ones; from any thread. Also where another
        process has copies of the connections, as a fork does."""
        self._is_aborted = True
        for one in self._neighbours or ():
            try:
                # That of an encrypted one would let a call under way go on without encryption.
                socket.socket.shutdown(one, socket.SHUT_RDWR)
            except OSError:
                # The other side has closed it already.
                pass

    def close(self) -> None:
        """Ends the connections; by the thread that makes the calls."""
        self.abort()
        for one in self._neighbours or ():
            one.close()

    # Calls that all workers make together.

    def gather(self, block: bytes) -> List[bytes]:
        """The blocks of all workers, by rank; all of the same length."""
        blocks = [b""] * self.size
        blocks[self.rank] = block
        for step in range(self.size - 1):
            into = bytearray(len(block))
            out = blocks[(self.rank - step) % self.size]
            self._exchange(memoryview(out), memoryview(into))
            blocks[(self.rank - step - 1) % self.size] = bytes(into)
        return blocks

    def reduce(self, buffer: np.ndarray) -> None:
        """The sum over all workers in place of a vector of float32; the same bits in all."""
        bounds = [len(buffer) * part // self.size for part in range(self.size + 1)]
        parts = [buffer[bounds[part] : bounds[part + 1]] for part in range(self.size)]
        longest = max(len(part) for part in parts)
        if len(self._scratch) < longest:
            self._scratch = np.empty(longest, np.float32)
        for step in range(self.size - 1):
            into = parts[(self.rank - step - 1) % self.size]
            arriving = self._scratch[: len(into)]
            adding = _Adding(into, arriving)
            out = parts[(self.rank - step) % self.size]
            self._exchange(_bytes(out), _bytes(arriving), adding.received)
        for step in range(self.size - 1):
            out = parts[(self.rank + 1 - step) % self.size]
            self._exchange(_bytes(out), _bytes(parts[(self.rank - step) % self.size]))

    def hand_on(self, source: int, values: np.ndarray) -> None:
        """The vector of the worker of this rank in place of those of all others."""
        whole, end = _bytes(values), values.nbytes
        parts = [whole[at : at + _PART_BYTES] for at in range(0, end, _PART_BYTES)]
        receives, sends = self.rank != source, (self.rank + 1) % self.size != source
        if not receives:
            self._exchange(whole if sends else _NOTHING, _NOTHING)
            return
        for number in range(len(parts) + 1):
            into = parts[number] if number < len(parts) else _NOTHING
            out = parts[number - 1] if sends and number > 0 else _NOTHING
            self._exchange(out, into)

    def hand_on_message(self, source: int, message: bytes) -> bytes:
        """The message of the worker of this rank."""
        length = np.frombuffer(_LENGTH.pack(len(message)), np.uint8).copy()
        self.hand_on(source, length)
        (count,) = _LENGTH.unpack(length.tobytes())
        if count > _MESSAGE_BYTES_MAX:
            raise Broken(f"rank {source} announces a message of {count} bytes")
        content = np.zeros(count, np.uint8)
        if self.rank == source:
            content[:] = np.frombuffer(message, np.uint8)
        self.hand_on(source, content)
        return content.tobytes()

    # Bytes.

    def _exchange(
        self,
        out: memoryview,
        into: memoryview,
        on_received: Callable[[int], None] = lambda count: None,
    ) -> None:
        """Sends all of one to the next and receives all of the other from the one before."""
        if self._neighbours is None:
            return
        before, after = self._neighbours
        sent = received = 0
        try:
            while sent < len(out) or received < len(into):
                if self._is_aborted:
                    raise Broken("the ring was aborted")
                came = _receive(before, into[received:]) if received < len(into) else 0
                received += came
                went = _send(after, out[sent : sent + _PART_BYTES]) if sent < len(out) else 0
                sent += went
                if came:
                    on_received(received)
                elif not went:
                    self._wait(received < len(into), sent < len(out))
        except OSError as error:
            raise Broken(f"a neighbour in the ring is gone: {error}") from error

    def _wait(self, receives: bool, sends: bool) -> None:
        assert self._neighbours is not None, "a ring of one waits for nothing"
        before, after = self._neighbours
        poll = select.poll()
        if receives:
            poll.register(before, select.POLLIN)
        if sends:
            poll.register(after, select.POLLOUT)
        poll.poll(_LOOK_MS)


class _Adding:
    """Adds what has arrived to a part of the sum, while more arrives."""

    def __init__(self, sums: np.ndarray, arriving: np.ndarray) -> None:
        self._sums, self._arriving, self._added = sums, arriving, 0

    def received(self, count: int) -> None:
        """Adds up the bytes received so far."""
        floats = count // 4
        if floats - self._added >= _SUM_FLOATS or floats == len(self._sums):
            fresh = slice(self._added, floats)
            self._sums[fresh] += self._arriving[fresh]
            self._added = floats


def _bytes(values: np.ndarray) -> memoryview:
    return memoryview(values.view(np.uint8))


def _receive(connection: socket.socket, into: memoryview) -> int:
    try:
        count = connection.recv_into(into)
    except _WAITS:
        return 0
    if count == 0:
        raise ConnectionResetError("closed")
    return count


def _send(connection: socket.socket, out: memoryview) -> int:
    try:
        return connection.send(out)
    except _WAITS:
        return 0


def form(
    listener: Listener,
    token: str,
    generation: int,
    rank: int,
    addresses: List[str],
    seconds: float,
    stopped: Callable[[], bool],
) -> Ring:
    """The ring of these workers, by rank. Raises Broken if it is not there after these seconds, or
    once `stopped()` is true; Unreached if the next worker is why."""
    size = len(addresses)
    if size == 1:
        return Ring(generation, rank, size)
    until = time.monotonic() + seconds
    following = (rank + 1) % size
    try:
        after = connect(addresses[following], token, generation, (rank, following), until, stopped)
    except (Unlinked, Refused) as error:
        raise Unreached(str(error)) from error
    try:
        before = listener.take(generation, (rank - 1) % size, until, stopped)
    except Unlinked as error:
        after.close()
        raise Broken(str(error)) from error
    return Ring(generation, rank, size, (before, after))
