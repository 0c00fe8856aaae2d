"""Compiles elastic.proto into the wheel, and adds the path of the published names. Owns: these two
steps. Does not know about: the rest of the build, which is in pyproject.toml."""

import os

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))
PROTO = os.path.join(
    HERE, os.pardir, os.pardir, "crates", "elastic-proto", "proto", "elastic.proto"
)


class BuildWithProtocol(build_py):
    """Puts `elastic.binpb` beside the modules that are built, and has Python find the modules under
    published names: after those of the same names that are installed."""

    def run(self):
        super().run()
        with open(os.path.join(self.build_lib, "elastane.pth"), "w", encoding="utf-8") as file:
            file.write("elastane/compat\n")
        from grpc_tools import protoc

        proto = os.path.normpath(PROTO)
        if not os.path.exists(proto):
            raise SystemExit(f"{proto} is missing: build the wheel in the repository")
        out = os.path.join(self.build_lib, "elastane", "elastic.binpb")
        arguments = ["protoc", f"-I{os.path.dirname(proto)}", f"--descriptor_set_out={out}", proto]
        if protoc.main(arguments) != 0:
            raise SystemExit(f"{proto} cannot be compiled")


setup(cmdclass={"build_py": BuildWithProtocol})
