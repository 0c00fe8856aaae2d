"""The messages and calls of the protocol `elastic.proto`.

Owns: making classes of the definition. Does not know about: addresses, retries, what a call is for.

A wheel brings the definition compiled (`elastic.binpb`, made when the wheel is built); in a source
tree it is compiled at import, for which grpcio-tools has to be installed. Classes are made of it
here, so that a wheel works with every version of protobuf, whichever other packages need.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any, Callable, Tuple

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "elastane.elastic.v1"
VERSION = "1"
_HERE = os.path.dirname(os.path.abspath(__file__))


def compile_definition(proto: str) -> bytes:
    """The definition as a serialized set of descriptors.

    The compiler runs in a process of its own: in this one it does not get along with Debian's
    build of PyTorch.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "elastic.binpb")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{os.path.dirname(proto)}"]
        command += [f"--descriptor_set_out={out}", proto]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ImportError(
                f"this is a source tree of elastane, and {proto} cannot be compiled: "
                f"{done.stderr.strip()}; pip install grpcio-tools, or install the wheel"
            )
        with open(out, "rb") as file:
            return file.read()


def _definition() -> bytes:
    packed = os.path.join(_HERE, "elastic.binpb")
    if os.path.exists(packed):
        with open(packed, "rb") as file:
            return file.read()
    root = os.path.join(_HERE, *[os.pardir] * 4)
    proto = os.path.normpath(
        os.path.join(root, "crates", "elastic-proto", "proto", "elastic.proto")
    )
    if not os.path.exists(proto):
        raise ImportError(f"neither {packed} nor {proto} exists: install elastane from its wheel")
    return compile_definition(proto)


class Messages:
    """The classes of messages and the numbers of enumerations, as attributes."""

    def __init__(self, definition: bytes) -> None:
        files = descriptor_pb2.FileDescriptorSet.FromString(definition)
        self._pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            self._pool.Add(file)
            for enum in file.enum_type:
                for value in enum.value:
                    setattr(self, value.name, value.number)

    def __getattr__(self, name: str) -> Any:
        try:
            described = self._pool.FindMessageTypeByName(f"{PACKAGE}.{name}")
        except KeyError:
            raise AttributeError(f"the protocol has no message {name}") from None
        made = message_factory.GetMessageClass(described)
        setattr(self, name, made)
        return made

    def method(self, service: str, name: str) -> Tuple[Any, Any]:
        """The classes of request and reply of a call."""
        called = self._pool.FindServiceByName(f"{PACKAGE}.{service}").FindMethodByName(name)
        classes = (called.input_type, called.output_type)
        return tuple(message_factory.GetMessageClass(one) for one in classes)  # type: ignore


messages = Messages(_definition())


def call(channel: grpc.Channel, service: str, name: str) -> Callable[..., Any]:
    """A call of this service over a channel."""
    request, reply = messages.method(service, name)
    return channel.unary_unary(
        f"/{PACKAGE}.{service}/{name}",
        request_serializer=request.SerializeToString,
        response_deserializer=reply.FromString,
    )
