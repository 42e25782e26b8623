"""etcd's messages, made of what etcd3 holds."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
before = dict(os.environ)
from google.protobuf.internal import api_implementation
from elastic.adapters.store.etcd.rpc import rpc
import sys
assert dict(os.environ) == before
assert not [name for name in sys.modules if name.partition(".")[0] == "etcd3"]
put = rpc.RequestOp(request_put=rpc.PutRequest(key=b"k", value=b"v", lease=-7, prev_kv=True))
print(api_implementation.Type(), rpc.TxnRequest(success=[put]).SerializeToString().hex(), rpc.RangeRequest.CREATE)
"""
WIRE = "1215" + "1213" + "0a016b" + "120176" + "18f9ffffffffffffffff01" + "2001"
"""success, request_put, key, value, lease, prev_kv: by etcd's rpc.proto."""


@pytest.mark.parametrize("implementation", ["", "python"])
def test_its_messages_are_made_by_whichever_protobuf_there_is_and_change_no_environment(implementation: str) -> None:
    chosen = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": implementation} if implementation else {}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **chosen}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    of, wire, created = ran.stdout.split()
    assert of == (implementation or "upb")
    assert wire == WIRE
    assert created == "2"
