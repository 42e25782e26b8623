"""The one place that imports etcd3: etcd's v3 requests and answers, and the gRPC that carries them.

etcd3 0.12.0 brings code that protoc made long ago, which only protobuf's Python implementation still takes. That choice is
an environment variable, read when protobuf is imported; so is gRPC's own log, which would write C++ lines to the terminal.
Both are set around the import only, so that no worker inherits them.

Of etcd3's client nothing is used but these messages and stubs: it knows one endpoint, hides the header of an answer and the
lease of a key, and its watch neither raises nor ends when its member dies.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

WHILE_IMPORTING = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python", "GRPC_VERBOSITY": "NONE"}


@contextmanager
def _environment(set_to: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in set_to}
    os.environ.update(set_to)
    try:
        yield
    finally:
        for name, text in before.items():
            if text is None:
                del os.environ[name]
            else:
                os.environ[name] = text


with _environment(WHILE_IMPORTING), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its age
    try:
        import etcd3.etcdrpc as rpc
        import grpc
    except TypeError as error:
        raise ImportError(
            "protobuf was imported before, in an implementation that etcd3 cannot use; "
            "set PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python before this program starts"
        ) from error

__all__ = ["grpc", "rpc"]
