"""The one place that knows etcd3 and gRPC: etcd's v3 requests and answers, its services, and what carries them.

etcd3 0.12.0 brings code that protoc made long ago, which only protobuf's Python implementation still takes: slow, and chosen
for a whole process by an environment variable. That code also holds etcd's own descriptors, from which it was made; so our
messages are made of those, in a pool of their own, by whichever implementation protobuf has. Nothing of etcd3 is run: its
client knows one endpoint, hides the header of an answer and the lease of a key, and its watch neither raises nor ends when
its member dies.

gRPC's own log would write C++ lines to the terminal. It is silenced by an environment variable, set around the import only,
so that no worker inherits it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor_pool import DescriptorPool

_FILES = ("kv", "auth", "rpc")
"""The descriptors, each after those that it refers to."""
_WHILE_IMPORTING = {"GRPC_VERBOSITY": "NONE"}


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


with _environment(_WHILE_IMPORTING):
    import grpc


def _descriptor(name: str) -> bytes:
    """Return the descriptor that protoc wrote into etcd3's code, which is read and not run. Raises ImportError."""
    spec = find_spec("etcd3")
    for folder in spec.submodule_search_locations or () if spec else ():
        text = (Path(folder) / "etcdrpc" / f"{name}_pb2.py").read_text()
        if found := re.search(r"\bserialized_pb=_b\(('.*')\)", text):
            return str(ast.literal_eval(found[1])).encode("latin1")
    raise ImportError(f"no etcd3 with the descriptor of {name}.proto: install etcd3==0.12.0")


def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    for name in _FILES:
        pool.AddSerializedFile(_descriptor(name))
    return pool


_made = _pool()
rpc: Any = SimpleNamespace(
    **{
        name.rpartition(".")[2]: message
        for name, message in message_factory.GetMessageClassesForFiles(
            [f"{name}.proto" for name in _FILES], _made
        ).items()
    }
)
"""The messages, by name."""


def method(channel: Any, service: str, name: str) -> Any:
    """Return a call with one answer, which the calling thread reads itself. (gRPC reads the answers of calls that can be
    cancelled one by one in another thread.) LeaseKeepAlive takes a stream of requests; one request is enough."""
    return _made_for(channel.unary_unary, service, name)


def stream(channel: Any, service: str, name: str) -> Any:
    """Return a call that is answered until it is cancelled. One request is sent: a stream of them needs a thread."""
    return _made_for(channel.unary_stream, service, name)


def _made_for(make: Callable[..., Any], service: str, name: str) -> Any:
    found = _made.FindServiceByName(f"etcdserverpb.{service}").methods_by_name[name]
    request, answer = map(message_factory.GetMessageClass, (found.input_type, found.output_type))
    return make(
        f"/etcdserverpb.{service}/{name}",
        request_serializer=request.SerializeToString,
        response_deserializer=answer.FromString,
    )


__all__ = ["grpc", "method", "rpc", "stream"]
