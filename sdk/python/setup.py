"""Compiles elastic.proto into the wheel. Owns: that one step. Does not know about: the rest of the
build, which is in pyproject.toml."""

import os

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))
PROTO = os.path.join(
    HERE, os.pardir, os.pardir, "crates", "elastic-proto", "proto", "elastic.proto"
)


class BuildWithProtocol(build_py):
    """Puts `elastic.binpb` beside the modules that are built."""

    def run(self):
        super().run()
        from grpc_tools import protoc

        proto = os.path.normpath(PROTO)
        if not os.path.exists(proto):
            raise SystemExit(f"{proto} is missing: build the wheel in the repository")
        out = os.path.join(self.build_lib, "elastane", "elastic.binpb")
        arguments = ["protoc", f"-I{os.path.dirname(proto)}", f"--descriptor_set_out={out}", proto]
        if protoc.main(arguments) != 0:
            raise SystemExit(f"{proto} cannot be compiled")


setup(cmdclass={"build_py": BuildWithProtocol})
