"""Connections between workers that train together. Owns: the port of a worker, and that both sides
of a connection prove to have the token of the job before anything else is read. Does not know
about: later messages.

The side that connects says hello with a random number; the side that listens answers with another
and with an HMAC-SHA256 over both, and gets such a one back. The token itself is never sent. Both
cover the generation of the world and the two ranks, so an answer is good for one connection only. A
connection without this proof within a few seconds is closed. A flood of such connections only
delays the next world. If the parts of the job encrypt, all this is inside of TLS.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import socket
import ssl
import struct
import threading
import time
from typing import Callable, Dict, Optional, Tuple, Union

from . import credentials

_MAGIC = b"elastane ring 1\n"
# Magic, random number, generation, rank that connects, rank that listens.
_HELLO = struct.Struct(">16s32sQII")
_PROOF = 32
_ADMITTED = b"+"
_HANDSHAKE_S = 5.0
# Most connections in a handshake at the same time; more are closed at once.
_HANDSHAKES_MAX = 64
_PAUSE_S = 0.02
Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]


class Refused(Exception):
    """The other side has another token, or is no worker."""


class Unlinked(Exception):
    """There is no connection yet, and the caller does not want to wait any longer."""


def _proof(token: bytes, role: bytes, hello: bytes, nonce: bytes) -> bytes:
    return hmac.new(token, role + hello + nonce, hashlib.sha256).digest()


def _read(connection: socket.socket, count: int, until: float) -> bytes:
    """Reads `count` bytes; raises OSError if they do not come in time, however slowly others
    come."""
    found = b""
    while len(found) < count:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the handshake takes too long")
        connection.settimeout(left)
        part = connection.recv(count - len(found))
        if not part:
            raise ConnectionResetError("closed in the handshake")
        found += part
    return found


def _listen(host: str) -> socket.socket:
    """At an address of this machine alone if it is one; else at all that this one has."""
    try:
        address: Optional[Address] = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if address is not None and address.is_loopback:
        family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        return socket.create_server((host, 0), family=family, backlog=128)
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("", 0), family=socket.AF_INET6, backlog=128, dualstack_ipv6=True
            )
        except OSError:
            # The machine supports IPv6 and has no address of it.
            pass
    return socket.create_server(("", 0), backlog=128)


def _at(host: str, port: int) -> str:
    """Address in the form of the master: colons of IPv6 are not those before the port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Listener:
    """The port of a worker. Others that have proved themselves wait there to be taken."""

    def __init__(self, host: str, token: str) -> None:
        text, pem = credentials.split(token)
        self._token = text.encode()
        self._tls = credentials.context(pem, ssl.Purpose.CLIENT_AUTH)
        host = host.strip("[]")
        self._socket = _listen(host)
        self.address = _at(host, self._socket.getsockname()[1])
        self._arrived: Dict[Tuple[int, int], socket.socket] = {}
        self._generation = 0
        self._changed = threading.Condition()
        self._slots = threading.Semaphore(_HANDSHAKES_MAX)
        self._is_closed = False
        threading.Thread(target=self._accept, name="listen", daemon=True).start()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                # Too many files, a connection that was gone already, or the end.
                time.sleep(_PAUSE_S)
                continue
            if not self._slots.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._admit, args=(connection,), daemon=True).start()

    def _admit(self, connection: socket.socket) -> None:
        until = time.monotonic() + _HANDSHAKE_S
        try:
            if self._tls is not None:
                connection.settimeout(_HANDSHAKE_S)
                connection = self._tls.wrap_socket(connection, server_side=True)
            is_kept = self._check(connection, until)
        except OSError:
            is_kept = False
        finally:
            self._slots.release()
        if not is_kept:
            connection.close()

    def _check(self, connection: socket.socket, until: float) -> bool:
        hello = _read(connection, _HELLO.size, until)
        magic, _, generation, rank, _ = _HELLO.unpack(hello)
        if magic != _MAGIC:
            return False
        nonce = os.urandom(32)
        connection.sendall(nonce + _proof(self._token, b"listens", hello, nonce))
        theirs = _read(connection, _PROOF, until)
        if not hmac.compare_digest(theirs, _proof(self._token, b"connects", hello, nonce)):
            return False
        with self._changed:
            if self._is_closed or generation < self._generation:
                return False
            connection.sendall(_ADMITTED)
            earlier = self._arrived.pop((generation, rank), None)
            self._arrived[generation, rank] = connection
            self._changed.notify_all()
        if earlier is not None:
            earlier.close()
        return True

    def take(
        self, generation: int, rank: int, until: float, stopped: Callable[[], bool]
    ) -> socket.socket:
        """The newest connection of this rank in this generation; those of earlier ones are closed
        from now on."""
        with self._changed:
            self._generation = max(self._generation, generation)
            for key in [key for key in self._arrived if key[0] < generation]:
                self._arrived.pop(key).close()
            while (generation, rank) not in self._arrived:
                left = until - time.monotonic()
                if left <= 0 or stopped():
                    raise Unlinked(f"rank {rank} does not connect")
                self._changed.wait(min(left, 0.1))
            return self._arrived.pop((generation, rank))

    def close(self) -> None:
        """Ends it, with all that waits."""
        with self._changed:
            self._is_closed = True
            waiting, self._arrived = list(self._arrived.values()), {}
        # Wakes the thread that accepts.
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        for connection in [*waiting, self._socket]:
            connection.close()


def connect(
    address: str,
    token: str,
    generation: int,
    ranks: Tuple[int, int],
    until: float,
    stopped: Callable[[], bool],
) -> socket.socket:
    """A connection from the first to the second of these ranks, which both have proved themselves."""
    text, pem = credentials.split(token)
    tls = credentials.context(pem, ssl.Purpose.SERVER_AUTH)
    last: Optional[Exception] = None
    refused: Optional[Refused] = None
    while time.monotonic() < until and not stopped():
        try:
            return _connect(address, (text.encode(), tls), generation, ranks, until)
        except Refused as error:
            refused = error
        except (OSError, ValueError) as error:
            last = error
        # The worker may be starting, or another process has its old port.
        time.sleep(_PAUSE_S)
    if refused is not None:
        raise refused
    raise Unlinked(f"rank {ranks[1]} at {address} cannot be reached: {last}")


def _connect(
    address: str,
    known_by: Tuple[bytes, Optional[ssl.SSLContext]],
    generation: int,
    ranks: Tuple[int, int],
    until: float,
) -> socket.socket:
    token, tls = known_by
    host, _, port = address.rpartition(":")
    until = min(until, time.monotonic() + _HANDSHAKE_S)
    to = (host.strip("[]"), int(port))
    connection = socket.create_connection(to, max(0.01, until - time.monotonic()))
    try:
        if tls is not None:
            connection.settimeout(_HANDSHAKE_S)
            connection = tls.wrap_socket(connection, server_hostname=credentials.TLS_NAME)
        hello = _HELLO.pack(_MAGIC, os.urandom(32), generation, *ranks)
        connection.sendall(hello)
        answer = _read(connection, 32 + _PROOF, until)
        nonce, theirs = answer[:32], answer[32:]
        if not hmac.compare_digest(theirs, _proof(token, b"listens", hello, nonce)):
            raise Refused(f"rank {ranks[1]} at {address} does not have the token of this job")
        connection.sendall(_proof(token, b"connects", hello, nonce))
        if _read(connection, 1, until) != _ADMITTED:
            raise Refused(f"rank {ranks[1]} at {address} answers something else")
        return connection
    except BaseException:
        connection.close()
        raise
