"""Facts of this process's cgroup, which its workers share: how many processes the kernel killed because memory ran out,
and how many CPUs they may use.

Version 2 counts in `memory.events`, version 1 in `memory.oom_control`; a cgroup whose memory nobody accounts for is part of
the nearest one above that has the file. Where there is none, the host's count (`/proc/vmstat`) stands in, which says less.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ...core.values import frozen

_PROC = Path("/proc")
_LIMITS = ("memory.max", "memory.limit_in_bytes")
_ANY_NAME = "surrogateescape"
"""The name of a mount or of a cgroup is bytes, as that of any file is."""
_UNLIMITED = 1 << 60
"""Version 1 shows a number just below 2**63 where there is no limit."""


@frozen
class Kills:
    """Out-of-memory kills in a span of time. `limit` is the cgroup's, in bytes, if it has one; without `in_cgroup`, the
    count is the whole host's."""

    count: int
    in_cgroup: bool
    limit: int | None = None


@frozen
class Counter:
    """A file with a count in it."""

    file: Path
    in_cgroup: bool

    def read(self) -> int | None:
        """Return the count; None if the file has none (any more)."""
        try:
            words = dict(line.split(" ", 1) for line in self.file.read_text().splitlines() if " " in line)
            return int(words["oom_kill"])
        except (OSError, ValueError, KeyError):
            return None

    def since(self, before: int) -> Kills | None:
        """Return the kills since the count was that; None if the file has none any more. The limit is looked up only to
        explain one: this is on the way of every restart."""
        now = self.read()
        return None if now is None else Kills(now - before, self.in_cgroup, self._limit() if now > before else None)

    def _limit(self) -> int | None:
        """Return the narrowest limit from here up."""
        if not self.in_cgroup:
            return None
        found = [limit for folder in (self.file.parent, *self.file.parent.parents) for limit in _limits(folder)]
        return min(found, default=None)


def _limits(folder: Path) -> Iterator[int]:
    for name in _LIMITS:
        try:
            limit = int((folder / name).read_text())
        except (OSError, ValueError):  # no such file, or `max`
            continue
        if limit < _UNLIMITED:
            yield limit


def counter(proc: Path = _PROC) -> Counter | None:
    """Return the counter of this process and its children; None if the kernel has none."""
    files = _candidates(proc, (("memory", "memory.oom_control"), ("", "memory.events")))
    found = (*(Counter(file, True) for file in files), Counter(proc / "vmstat", False))
    return next((each for each in found if each.read() is not None), None)


def killed_as_one(proc: Path = _PROC) -> Path | None:
    """Return the nearest cgroup, from this one up, that the kernel kills as a whole when its memory is used up."""
    for file in _candidates(proc, (("", "memory.oom.group"),)):
        with suppress(OSError):
            if file.read_text().strip() == "1":
                return file.parent
    return None


def cpu_quota(proc: Path = _PROC) -> float | None:
    """Return how many CPUs' time the cgroup may use, by the narrowest quota from it up; None if there is none."""
    quotas = (_quota(file) for file in _candidates(proc, (("cpu", "cpu.cfs_quota_us"), ("", "cpu.max"))))
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(file: Path) -> float | None:
    try:
        words = file.read_text().split()
        period = words[1] if len(words) > 1 else file.with_name("cpu.cfs_period_us").read_text()
        return int(words[0]) / int(period) if int(words[0]) > 0 else None
    except (OSError, ValueError, IndexError, ZeroDivisionError):  # no such file, or `max`
        return None


def _candidates(proc: Path, wanted: tuple[tuple[str, str], ...]) -> Iterator[Path]:
    """Yield the files from the cgroup itself up to its mount: `wanted` names version 1's controller, or none, and a file."""
    try:
        groups = (proc / "self" / "cgroup").read_text(errors=_ANY_NAME).split("\n")[:-1]
        mounts = (proc / "self" / "mountinfo").read_text(errors=_ANY_NAME).split("\n")[:-1]
    except OSError:
        return
    for kind, name in wanted:
        path = next(
            (path for _, kinds, path in (group.split(":", 2) for group in groups) if kind in kinds.split(",")), None
        )
        for root, mount in _mounts(mounts, kind):
            if path is not None and PurePosixPath(path).is_relative_to(root):
                folder = Path(mount, PurePosixPath(path).relative_to(root))
                yield from (each / name for each in (folder, *folder.parents) if each.is_relative_to(mount))


def _mounts(lines: list[str], kind: str) -> Iterator[tuple[str, str]]:
    """Yield the root and place of each mount of version 2, or of version 1's controller `kind`."""
    for line in lines:
        before, _, after = line.partition(" - ")
        filesystem, _, options = after.split(" ", 2)
        if filesystem == ("cgroup" if kind else "cgroup2") and (not kind or kind in options.split(",")):
            yield before.split(" ")[3], before.split(" ")[4]
