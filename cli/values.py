"""Readers of option values: plain functions that take a text, and raise ValueError with the reason and the remedy."""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from ..adapters.launch_settings import Streams, parse_streams
from ..adapters.workers.devices.count import count_devices, count_others
from ..adapters.workers.start.programs import check_program
from ..adapters.workers.worker_port import CannotStart
from ..core.rendezvous.settings import FAILURES_MAX, FailureLimit
from ..core.rendezvous.state import FRUITLESS_MAX, NODES_MAX, Limits
from ..core.values import frozen
from ..core.world import COUNT_MAX, LOCAL_WORLD_SIZE_MAX, NAME_MAX, NODE_RANK, NOTICE_MAX_S, RANK_POLICY
from .mistakes import Mistake
from .render.text import say

SCHEMES = ("etcd", "http", "https")
ENDPOINT = r"(?P<host>\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?"
DIGITS_MAX = 20
"""A number with more digits than this is too large for every option."""
FILE_NAME_MAX = 255
HOST_MAX = 240
"""Characters of a host's name. A suffix that tells several agents of a host apart still fits behind it."""
STANDBYS_MAX = 1024
LABEL = r"[A-Za-z0-9_./-]{1,64}"
OWN_LABELS_MAX = 16
"""The wrapper's ranks have labels of their own besides these."""
RANK_KEYS_MAX = 3
"""Together they are one label of a node."""
SPAN_MAX_S = 10**9
"""Some 30 years. The system's clocks count no span that is much longer."""
LOOPBACK = "127.0.0.1"
"""Where this host alone reaches a port."""
BEGINNING_BYTES = 256
"""By so much of a file it is known whether it is one of ours."""
_REPORT = re.compile(rb'\{\s*"format":\s*\d+,\s*"run_id":')
_TRACE = re.compile(rb'\{"is":"header"')
_PICTURE = re.compile(
    rb'<svg xmlns="http://www\.w3\.org/2000/svg" width="\d+" height="\d+" viewBox="[\d ]+">\n<g font-family="DejaVu'
)
"""How the files begin that the commands write, of each release."""
SECRETS = {"token": "token_file=FILE, or set ELASTIC_STORE_TOKEN"}
"""Keys that a command line must not hold, because everybody on the host can read it; and what to write instead."""

Status = Literal["auto", "live", "plain", "off"]
OnStoreLoss = Literal["continue", "stop"]
NumaBinding = Literal["node", "socket", "exclusive", "core-complex"]
StartMethod = Literal["spawn", "fork", "forkserver"]
RestartScope = Literal["group", "rank"]
OnHang = Literal["report", "restart"]
Standbys = int | Literal["each"]


def whole(text: str, least: int = 0) -> int:
    """Read a whole number."""
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text) or _number(text) < least:
        raise ValueError(f"write a whole number, {least} or more")
    if _number(text) >= COUNT_MAX:
        raise ValueError("write a smaller number")
    return int(text)


def _number(digits: str) -> int:
    """Read digits with blanks around and perhaps a sign. Python refuses to read thousands of digits."""
    bare = digits.strip()
    return int(bare) if len(bare) <= DIGITS_MAX else int(f"{bare[0]}{'9' * DIGITS_MAX}")


def positive(text: str) -> int:
    """Read a whole number, 1 or more."""
    return whole(text, 1)


def seconds(text: str) -> float:
    """Read a span of 0 or more seconds."""
    return _span(text, "write a number of seconds, 0 or more")


def some_seconds(text: str) -> float:
    """Read a span above 0 seconds."""
    span = _span(text, remedy := "write a number of seconds above 0")
    if span == 0:
        raise ValueError(remedy)
    return span


def _span(text: str, remedy: str) -> float:
    try:
        span = float(text)
    except ValueError:
        span = -1.0
    if not math.isfinite(span) or span < 0:
        raise ValueError(remedy)
    if span > SPAN_MAX_S:
        raise ValueError(f"write a smaller number of seconds, {SPAN_MAX_S} at most")
    return span


def exit_barrier(text: str) -> float:
    """Read how long a node that is done waits for the others. No number stands for ever."""
    try:
        return some_seconds(text)
    except ValueError as reason:
        raise ValueError(f"{reason}; left out, the node waits as long as the others run") from None


def yes_or_no(text: str) -> bool:
    """Read torch's spellings of yes and no."""
    word = text.lower()
    if word in ("1", "true", "t", "yes", "y"):
        return True
    if word in ("0", "false", "f", "no", "n"):
        return False
    raise ValueError("write true or false")


def nodes(text: str) -> Limits:
    """Read `N`, `MIN:MAX` or `MIN:MAX:UNIT`."""
    parts = text.split(":")
    if len(parts) > 3 or not all(re.fullmatch(r"\d+", part) for part in parts):
        raise ValueError("write a number of nodes, MIN:MAX, or MIN:MAX:UNIT, like --nnodes=2:4")
    low, high = _number(parts[0]), _number(parts[:2][-1])
    if low < 1:
        raise ValueError(f"at least 1 node; write --nnodes={1 if len(parts) == 1 else f'1:{max(high, 1)}'}")
    if high < low:
        raise ValueError(f"the minimum ({low}) is above the maximum ({high}); write --nnodes={high}:{low}")
    if high > NODES_MAX:
        raise ValueError(f"at most {NODES_MAX} nodes")
    unit = _number(parts[2]) if len(parts) > 2 else 1
    if unit < 1:
        raise ValueError(f"a unit has at least 1 node; write --nnodes={low}:{high}")
    return in_units(low, high, unit)


def segment(text: str) -> tuple[str, int]:
    """Read `LABEL:N`: a label's name, and how many nodes a segment has."""
    label, _, size = text.strip().rpartition(":")
    if not re.fullmatch(LABEL, label) or not re.fullmatch(r"\d+", size):
        raise ValueError("write LABEL:N, like rack:2: the label, and how many nodes with one value of it are a segment")
    if label in (NODE_RANK, RANK_POLICY):
        raise ValueError(f"{label} is no label of --labels; write another one, like rack:{size}")
    if _number(size) < 2:
        raise ValueError(f"a segment has at least 2 nodes; write {label}:2, or leave it out")
    return label, _number(size)


def in_units(low: int, high: int, unit: int) -> Limits:
    """Return limits of whole units. Raises ValueError."""
    if unit > NODES_MAX:
        raise ValueError(f"a unit has at most {NODES_MAX} nodes")
    for name, value in (("minimum", low), ("maximum", high)):
        if value % unit:
            least = min(-(-low // unit), NODES_MAX // unit)
            fix = f"--nnodes={least * unit}:{max(high // unit, least) * unit}:{unit}"
            raise ValueError(f"the {name} ({value}) is no multiple of the unit ({unit}); write {fix}")
    return Limits(low, high, node_unit=unit)


def workers(text: str) -> int:
    """Read a number of workers per node; a kind of device is counted on this host."""
    match text:
        case "auto" | "cpu" | "gpu" | "xpu" as kind:
            return count_devices(kind)
        case _ if re.fullmatch(r"[a-z]\w*", text):
            return count_others(text)
        case _:
            pass
    if not re.fullmatch(r"\d+", text) or _number(text) < 1:
        raise ValueError("write a number of workers, 1 or more, or one of auto, cpu, gpu, xpu")
    if _number(text) > LOCAL_WORLD_SIZE_MAX:
        raise ValueError(f"at most {LOCAL_WORLD_SIZE_MAX} workers on one node")
    return int(text)


def standbys(text: str) -> Standbys:
    """Read a number of standbys; each: one for each worker."""
    if text == "each":
        return "each"
    try:
        number = positive(text)
    except ValueError:
        raise ValueError("write a number of standbys, 1 or more, or --standby alone for one for each worker") from None
    if number > STANDBYS_MAX:
        raise ValueError(f"at most {STANDBYS_MAX} standbys on one node")
    return number


def modules(text: str) -> tuple[str, ...]:
    """Read `torch,transformers`; nothing for none."""
    names = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    if wrong := next((name for name in names if not all(part.isidentifier() for part in name.split("."))), None):
        raise ValueError(
            f"{wrong!r} is no module's name; write names with commas between, like torch,torch.distributed"
        )
    return names


def labels(text: str) -> tuple[tuple[str, str], ...]:
    """Read `rack=r7,zone=b`; nothing for none."""
    pairs = [each.strip().partition("=") for each in text.split(",")] if text.strip() else []
    for key, _, value in pairs:
        if not re.fullmatch(LABEL, key) or not value or len(value) > NAME_MAX or not value.isprintable():
            raise ValueError(
                "write NAME=VALUE with commas between, like rack=r7,zone=b; names of letters, digits and _-./"
            )
    found = {key: value for key, _, value in pairs}
    if len(found) < len(pairs) or NODE_RANK in found or RANK_POLICY in found:
        raise ValueError(f"write each name once, --node-rank for {NODE_RANK} and --rank-policy for {RANK_POLICY}")
    if len(found) > OWN_LABELS_MAX:
        raise ValueError(f"write {OWN_LABELS_MAX} labels at most")
    return tuple(sorted(found.items()))


def rank_policy(text: str) -> tuple[str, ...]:
    """Read `group_by(zone,rack)`: the keys, the widest first; nothing for none."""
    if not text.strip():
        return ()
    found = re.fullmatch(r"group_by\((.*)\)", text.strip())
    keys = tuple(key.strip() for key in found[1].split(",")) if found else ()
    if not keys or not all(re.fullmatch(LABEL, key) for key in keys):
        raise ValueError("write group_by(KEY), like group_by(rack) or group_by(zone,rack)")
    if len(set(keys)) < len(keys) or len(keys) > RANK_KEYS_MAX:
        raise ValueError(f"write each key once, and {RANK_KEYS_MAX} at most")
    return keys


def name(text: str) -> str:
    """Read a name."""
    if not text or len(text) > NAME_MAX or not text.isprintable():
        raise ValueError(f"write 1 to {NAME_MAX} printable characters")
    return text


def name_or_none(text: str) -> str | None:
    """Read a name. An empty text is an option left out, as in a PET_ variable."""
    return name(text) if text else None


def role(text: str) -> str:
    """Read the name of a role; the default one if the text is empty."""
    return name_or_none(text) or "default"


def local_ranks(text: str) -> frozenset[int] | None:
    """Read `0,1,2`; None, for all ranks, if the text is empty."""
    if not text.strip():
        return None
    if not re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
        raise ValueError("write local ranks with commas between, like 0,1")
    return frozenset(_number(rank) for rank in text.split(","))


_CRASHED = "the launcher itself crashed"
_NOT_FROM_OUTSIDE: Mapping[signal.Signals, str] = {
    signal.SIGCHLD: "a child of the launcher has ended",
    signal.SIGPIPE: "nobody reads a stream",
    signal.SIGWINCH: "the terminal has another size",
    **dict.fromkeys((signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL), _CRASHED),
    **dict.fromkeys((signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS), _CRASHED),
}
"""The signals that tell a process of its own affairs, by what they say."""


def signals(text: str) -> tuple[signal.Signals, ...]:
    """Read `SIGTERM,SIGINT,…`."""
    found = []
    for word in map(str.strip, text.split(",")):
        names = signal.Signals.__members__
        signum = names.get(word) or names.get(f"SIG{word}")
        if signum is None:
            raise ValueError(f"{word!r} is no signal; write names like SIGTERM,SIGINT")
        if signum in (signal.SIGKILL, signal.SIGSTOP):
            raise ValueError(f"{signum.name} cannot be handled by any program; leave it out")
        if signum in _NOT_FROM_OUTSIDE:
            raise ValueError(f"{signum.name} says that {_NOT_FROM_OUTSIDE[signum]}, and asks for nothing; leave it out")
        found.append(signum)
    return tuple(dict.fromkeys(found))


def path(text: str) -> str:
    """Read the path of a file that may not be there yet."""
    if not text or "\0" in text:
        raise ValueError("write the path of a file")
    return text


def drain_signal(text: str) -> signal.Signals:
    """Read `USR1` or `SIGUSR1`."""
    found = signals(text)
    if len(found) > 1:
        raise ValueError("write one signal, like USR1")
    return found[0]


def notice_seconds(text: str) -> float:
    """Read how long a node that is drained has."""
    span = seconds(text)
    if span > NOTICE_MAX_S:
        raise ValueError(f"write a smaller number of seconds, {NOTICE_MAX_S:g} at most")
    return span


def node_failures(text: str) -> FailureLimit:
    """Read `3/600`: 3 failures within 600 seconds."""
    match = re.fullmatch(r"(\d{1,9})/(.+)", text)
    try:
        return FailureLimit(int(match[1]), some_seconds(match[2])) if match else FailureLimit(0, 1.0)
    except ValueError:
        raise ValueError(
            f"write K/S, K failures (1 to {FAILURES_MAX}) within S seconds (more than 0), like 3/600"
        ) from None


def rounds(text: str) -> int:
    """Read after how many rounds without progress a job gives up."""
    number = whole(text)
    if number > FRUITLESS_MAX:
        raise ValueError(f"write a smaller number, {FRUITLESS_MAX} at most")
    return number


def stacks_signal(text: str) -> int | None:
    """Read the number of the signal at which workers write their stacks, or `off`."""
    if text == "off":
        return None
    low, high = int(signal.SIGRTMIN), int(signal.SIGRTMAX)
    if not re.fullmatch("[0-9]{2}", text) or not low <= int(text) <= high:
        raise ValueError(f"write the number of a real-time signal, {low} to {high}, or off")
    return int(text)


def command(text: str) -> tuple[str, ...]:
    """Read a program with its arguments, quoted as a shell has it. The program must be there."""
    try:
        words = tuple(shlex.split(text))
        check_program(words[0] if words else "", os.environ.get("PATH"))
    except (ValueError, CannotStart) as reason:
        raise ValueError(f"{reason}; write a program with its arguments, like 'check.sh --quick'") from None
    return words


def configuration(text: str) -> Mapping[str, str]:
    """Read `key=value,key=value`; blanks around keys and values are ignored, and so are quotes around a value, or around
    all, which a shell has left. Of a key that is given twice the last value counts, as in torchrun, and a line says so.

    Raises Mistake for a secret, so that no message repeats it.
    """
    text = _unquoted(text)
    for secret, instead in SECRETS.items():
        if re.search(rf"(^|,)[\s'\"]*{secret}[\s'\"]*=", text, re.IGNORECASE):
            raise Mistake(f"--rdzv-conf: {secret}: everybody can read a command line; write {instead}")
    pairs = {}
    if re.search(r"(^|,)[\s'\"]*password[\s'\"]*=", text):
        raise ValueError("every user of this host can read it there; write user=NAME,password_file=FILE")
    for entry in text.split(",") if text.strip() else []:
        key, separator, value = (_unquoted(part) for part in _unquoted(entry).partition("="))
        if not key or not separator or not value:
            raise ValueError(f"{entry.strip()!r} is not key=value; write key=value,key=value")
        if key in pairs:
            say(f"elastic: --rdzv-conf: {key} is given twice; {key}={value} counts", err=True)
        pairs[key] = value
    return pairs


def _unquoted(text: str) -> str:
    text = text.strip()
    is_quoted = len(text) > 2 and text[0] in "'\"" and text[0] == text[-1] and text[0] not in text[1:-1]
    return text[1:-1].strip() if is_quoted else text


def directory(text: str) -> str:
    """Read the name of a directory, or of a place where one can be made. /dev/null stores nothing."""
    if os.path.exists(text) and not os.path.isdir(text) and text != os.devnull:
        raise ValueError("is a file; name a directory")
    return text


def streams(text: str) -> Streams:
    """Read which streams are meant, for all local ranks or by rank."""
    return parse_streams(text)


def _one_of(words: Any) -> Callable[[str], Any]:
    """Return a reader of the words of a Literal."""
    *others, last = get_args(words)

    def read(text: str) -> str:
        if text != last and text not in others:
            raise ValueError(f"write {', '.join(others)} or {last}")
        return text

    read.__annotations__["return"] = words  # completion offers them
    return read


status = _one_of(Status)
on_store_loss = _one_of(OnStoreLoss)
numa_binding = _one_of(NumaBinding)
start_method = _one_of(StartMethod)
restart_scope = _one_of(RestartScope)
on_hang = _one_of(OnHang)


def new_file(text: str) -> str:
    """Read the name of a file that can be made or replaced."""
    folder, name = os.path.split(_absolute(text))
    if not text or os.path.isdir(text) or not os.access(text if os.path.exists(text) else folder, os.W_OK):
        raise ValueError("no file can be written there; name a file in a directory that exists")
    if len(os.fsencode(name)) > FILE_NAME_MAX:
        raise ValueError(f"a file's name has at most {FILE_NAME_MAX} bytes; write a shorter one")
    return text


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise ValueError("this working directory was removed; go to another one") from None


def report_file(text: str) -> str:
    """Read the name of a new file, of a report, or of what is written into and keeps what it has, such as /dev/stdout."""
    from ..adapters.report.launch_report import keeps_its_place  # a launch has it, the other commands need it not

    return text if keeps_its_place(new_file(text)) else _new_or(text, _REPORT, "report")


def trace_file(text: str) -> str:
    """Read the name of a directory, of a new file, or of a trace, to which this one is appended."""
    return _new_or(_file_or_directory(text), _TRACE, "trace")


def _new_or(path: str, begins: re.Pattern[bytes], what: str) -> str:
    """Return the path. Raises ValueError if a file of another kind is there: it may be somebody's script."""
    if os.path.isfile(path) and os.access(path, os.R_OK):
        with open(path, "rb") as file:
            found = file.read(BEGINNING_BYTES)
        if found and not begins.match(found):
            raise ValueError(f"is there already, and is no {what}; name a new file")
    return path


def new_picture(text: str) -> str:
    """Read the name of a file for an SVG. Viewers open none that is named like another format."""
    if os.path.splitext(text)[1].lower() not in ("", ".svg"):
        raise ValueError(f"the picture is an SVG; write {os.path.splitext(text)[0]}.svg")
    return _new_or(new_file(text), _PICTURE, "picture")


def _file_or_directory(text: str) -> str:
    """Read the name of a file that can be made or appended to, or of a directory; one that is to be made ends with a /."""
    if text.endswith("/") or os.path.isdir(text):
        folder = _absolute(text)
        if os.path.exists(folder) and not (os.path.isdir(folder) and os.access(folder, os.W_OK)):
            raise ValueError("no file can be made there; name a directory that can be written to")
        return text
    return new_file(text)


@frozen
class Endpoints:
    """One or several addresses, and the scheme that they were written with."""

    scheme: str | None
    addresses: tuple[tuple[str, int | None], ...]


def endpoints(text: str) -> Endpoints | None:
    """Read an endpoint, or several with commas between, each bare or as a URL; None if the text is empty."""
    schemes, addresses = set(), []
    for part in text.split(",") if text.strip() else []:
        scheme, separator, rest = part.strip().rpartition("://")
        if separator and scheme not in SCHEMES:
            rest = part
        address = endpoint(rest.removesuffix("/"))
        if address is None:
            raise ValueError("an address is missing; write HOST:PORT,HOST:PORT")
        schemes.add(scheme)
        addresses.append(address)
    named = schemes - {""}
    if len(named) > 1:
        raise ValueError(f"{' and '.join(sorted(named))} are mixed; write one of them everywhere")
    return Endpoints(min(named, default=None), tuple(addresses)) if addresses else None


def endpoint(text: str) -> tuple[str, int | None] | None:
    """Read `host`, `host:port`, `[v6]` or `[v6]:port`; None if the text is empty."""
    if not text.strip():
        return None
    match = re.fullmatch(ENDPOINT, text.strip())
    if not match or int(match["port"] or 0) > 65_535:
        raise ValueError("write HOST or HOST:PORT, port 0 to 65535, an IPv6 address in brackets")
    return _name_of_host(match["host"].strip("[]")), int(match["port"]) if match["port"] else None


def _name_of_host(text: str) -> str:
    """Return the name. Raises ValueError if no resolver would take it."""
    try:
        size = len(text.encode("idna"))  # as the resolver does
    except UnicodeError:
        size = HOST_MAX + 1
    if size > HOST_MAX:
        raise ValueError(f"write a name that a host can have, 1 to 63 characters between dots and {HOST_MAX} in all")
    return text


def filters(text: str) -> tuple[str, ...]:
    """Read `apple,orange`; two commas are one that belongs to a text. An empty text is no filter."""
    parts = [part.replace("\0", ",") for part in text.replace(",,", "\0").split(",")] if text else []
    if not all(parts):
        raise ValueError("a text is empty, and every line contains it; write texts with commas between, ,, for a comma")
    return tuple(parts)


def host(text: str) -> str:
    """Read a host's name or address; an IPv6 address may have brackets."""
    bare = text.strip().removeprefix("[").removesuffix("]")
    if not re.fullmatch(r"[\w.-]+|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*", bare):
        raise ValueError("write the name or the address of a host")
    return _name_of_host(bare)


def host_or_none(text: str) -> str | None:
    """Read a host's name or address; None if the text is empty."""
    return host(text) if text else None


def master_port(text: str) -> int:
    """Read a port; 0 for any, which one node alone may have."""
    if not re.fullmatch(r"\s*\d{1,5}\s*", text) or int(text) > 65_535:
        raise ValueError("write a port, 0 to 65535")
    return int(text)


def port(text: str) -> int:
    """Read a port, 1 to 65535."""
    if not re.fullmatch(r"\s*\d{1,5}\s*", text) or not 1 <= int(text) <= 65_535:
        raise ValueError("write a port, 1 to 65535")
    return int(text)


def ports(text: str) -> range:
    """Read LOW-HIGH, or one port."""
    low, separator, high = text.partition("-")
    try:
        found = range(port(low), port(high if separator else low) + 1)
    except ValueError:
        found = range(0)
    if not found:
        raise ValueError("write LOW-HIGH, like 29400-29420")
    return found


def web_address(text: str) -> str:
    """Read http://HOST[:PORT][/PATH], or https."""
    from urllib.parse import urlsplit

    try:
        read = urlsplit(text)
        has_place = bool(read.hostname) and read.port != 0
    except ValueError:
        raise ValueError("write a URL like http://collector:4318") from None
    if not has_place or read.scheme not in ("http", "https") or read.query or read.fragment:
        raise ValueError("write a URL like http://collector:4318")
    return text


def listener(text: str) -> tuple[str, int]:
    """Read PORT, which this host alone reaches, or HOST:PORT."""
    name, separator, number = text.rpartition(":")
    return (host(name) if separator else LOOPBACK, port(number))
