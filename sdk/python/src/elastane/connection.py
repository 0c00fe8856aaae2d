"""Calls that outlive the other side. Owns: the token and the version in every call, encryption,
repeating what may be repeated, and the errors of calls. Does not know about: what a call is for."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, Optional, Tuple

import grpc

from . import protocol
from .credentials import TLS_NAME, split

_PAUSE_S, _PAUSE_S_MAX = 0.05, 1.0
_REPEATED = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)


class CallError(Exception):
    """A call that was refused, and must not be repeated as it is."""

    def __init__(self, what: str, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{what}: {details or code.name}")
        self.code = code


class Outdated(CallError):
    """FAILED_PRECONDITION: this process is not what it believes to be."""


class Unreachable(CallError):
    """The other side did not come back in time."""


class Interrupted(Exception):
    """The caller wants to stop; the call was not repeated further."""


class Connection:
    """A connection to one server, whose address may change.

    `address` is called before each attempt: a server that comes back may be elsewhere. `patience_s`
    is how long a server may be away. `token` is the content of the token file.
    """

    def __init__(
        self,
        service: str,
        address: Callable[[], Optional[str]],
        token: str,
        patience_s: float,
        message_bytes_max: int = 64 * 1024 * 1024,
    ) -> None:
        self._service = service
        self._address = address
        token, pem = split(token)
        # This certificate alone is believed, at any address.
        self._tls = grpc.ssl_channel_credentials(pem.encode()) if pem else None
        self._metadata = (
            ("authorization", f"Bearer {token}"),
            ("elastane-protocol", protocol.VERSION),
        )
        self._patience_s = patience_s
        self._options = [
            ("grpc.max_send_message_length", message_bytes_max),
            ("grpc.max_receive_message_length", message_bytes_max),
            # A cut network is noticed within seconds, and tried again soon after it is back.
            ("grpc.keepalive_time_ms", 20_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1_000),
            ("grpc.enable_http_proxy", 0),
        ]
        if self._tls is not None:
            self._options.append(("grpc.ssl_target_name_override", TLS_NAME))
        self._lock = threading.Lock()
        self._channel: Optional[grpc.Channel] = None
        self._connected_to: Optional[str] = None
        self._calls: Dict[str, Callable[..., Any]] = {}

    def _callable(self, name: str) -> Tuple[Optional[Callable[..., Any]], Optional[str]]:
        with self._lock:
            address = self._address()
            if address is None:
                return None, None
            if address != self._connected_to:
                if self._channel is not None:
                    self._channel.close()
                self._channel = self._open(address)
                self._connected_to = address
                self._calls = {}
            if name not in self._calls:
                assert self._channel is not None, "it was made above"
                self._calls[name] = protocol.call(self._channel, self._service, name)
            return self._calls[name], address

    def _open(self, address: str) -> grpc.Channel:
        if self._tls is None:
            return grpc.insecure_channel(address, options=self._options)
        return grpc.secure_channel(address, self._tls, options=self._options)

    def call(
        self,
        name: str,
        request: Any,
        wait_ms: int = 0,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> Any:
        """The reply. A call to an unavailable server is repeated until `patience_s` is over.

        Raises Interrupted once `interrupted()` is true and an attempt has failed.
        """
        until = time.monotonic() + self._patience_s
        pause = _PAUSE_S
        while True:
            called, address = self._callable(name)
            what = f"{self._service}.{name} at {address or 'an address that is not known yet'}"
            error = CallError(what, grpc.StatusCode.UNAVAILABLE, "not there yet")
            if called is not None:
                try:
                    return called(request, timeout=wait_ms / 1000 + 30, metadata=self._metadata)
                except grpc.RpcError as failed:
                    error = _judge(what, failed)
                except ValueError:
                    # The channel was closed under the call: the address has changed.
                    pass
            if error.code not in _REPEATED:
                raise error
            if interrupted():
                raise Interrupted()
            if time.monotonic() > until:
                raise Unreachable(what, error.code, f"away for {self._patience_s:.0f} s: {error}")
            time.sleep(pause)
            pause = min(pause * 2, _PAUSE_S_MAX)

    def close(self) -> None:
        """Ends all calls."""
        with self._lock:
            if self._channel is not None:
                self._channel.close()
            self._channel, self._connected_to = None, None


def _judge(what: str, error: Any) -> CallError:
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        return Outdated(what, code, details)
    return CallError(what, code, details)
