"""How a secret is read from a file, and what is refused: with the remedy, and without the secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elastic.adapters.store.secret import BYTES_MAX, BYTES_MIN, Secret, read_secret

TOKEN = b"correct horse battery staple"


def held(folder: Path, data: bytes = TOKEN, mode: int = 0o600) -> str:
    path = folder / "token"
    path.write_bytes(data)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o440, 0o660])
def test_a_file_that_its_owner_and_perhaps_a_group_can_read_is_read(tmp_path: Path, mode: int) -> None:
    """A group: so does Kubernetes mount a secret for a program that is not root."""
    assert read_secret(held(tmp_path, mode=mode)) == Secret(TOKEN)


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o666])
def test_a_file_that_everybody_can_read_or_change_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    path = held(tmp_path, mode=mode)
    with pytest.raises(ValueError, match=f"everybody.*mode {mode:o}.*write chmod o= {path}") as refusal:
        read_secret(path)
    assert TOKEN.decode() not in str(refusal.value)
    os.chmod(path, mode & ~0o007)
    assert read_secret(path) == Secret(TOKEN)


def test_the_file_behind_a_link_counts(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(held(tmp_path, mode=0o644))
    with pytest.raises(ValueError, match="everybody"):
        read_secret(str(link))


def test_blanks_and_line_ends_around_it_are_no_part_of_it(tmp_path: Path) -> None:
    assert read_secret(held(tmp_path, b"  " + TOKEN + b"\r\n\n")) == Secret(TOKEN)


def test_a_home_directory_may_be_written_as_in_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_secret("~/token") == Secret(TOKEN)


@pytest.mark.parametrize("size", [0, BYTES_MIN - 1, BYTES_MAX + 1, 100_000])
def test_a_secret_that_can_be_guessed_or_is_none_is_refused_with_how_to_make_one(tmp_path: Path, size: int) -> None:
    with pytest.raises(ValueError, match=f"{BYTES_MIN} to {BYTES_MAX} are wanted.*openssl rand") as refusal:
        read_secret(held(tmp_path, b"x" * size))
    assert "xxx" not in str(refusal.value)


@pytest.mark.parametrize("size", [BYTES_MIN, BYTES_MAX])
def test_the_shortest_and_the_longest_are_read(tmp_path: Path, size: int) -> None:
    assert read_secret(held(tmp_path, b"x" * size + b"\n")) == Secret(b"x" * size)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match="is no file"):
            read_secret(str(path))
    with pytest.raises(ValueError, match="no such file or directory; name a file"):
        read_secret(str(tmp_path / "nothing"))
