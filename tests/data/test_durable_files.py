"""Durable files: whole or not there, on disk before the call ends, whatever stops it."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from congenial.data.durable_files import (
    name_new,
    sync_tree,
    write_new,
    write_synced,
    write_whole,
)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the files and folders that were waited for, in order."""
    found: list[int] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        found.append(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def number(path: Path) -> int:
    return path.stat().st_ino


def test_a_tree_is_on_disk_with_every_file_and_folder(tmp_path: Path, synced: list[int]) -> None:
    folder = tmp_path / "counts"
    files = [folder / f"part={part}" / "0.parquet" for part in range(2)]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x")
    sync_tree(folder)
    waited_for = [*files, *(file.parent for file in files), folder, tmp_path]
    assert {*synced} >= {number(path) for path in waited_for}


@pytest.mark.parametrize("write", [write_whole, write_new])
@pytest.mark.parametrize("content", [b"{}", lambda file: file.write(b"{}")], ids=["bytes", "call"])
def test_a_file_is_on_disk_before_its_name_is(
    tmp_path: Path, synced: list[int], write: Callable[..., None], content: Any
) -> None:
    write(tmp_path / "1.json", content)
    assert (tmp_path / "1.json").read_bytes() == b"{}"
    assert synced == [number(tmp_path / "1.json"), number(tmp_path)]
    assert [path.name for path in tmp_path.iterdir()] == ["1.json"]


def test_the_name_is_taken_when_the_content_is_on_disk(
    tmp_path: Path, synced: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[int] = []
    real = Path.rename

    def rename(old: Path, new: Path) -> Path:
        before.extend(synced)
        return real(old, new)

    monkeypatch.setattr(Path, "rename", rename)
    write_whole(tmp_path / "1.json", b"{}")
    assert before == [number(tmp_path / "1.json")]


def test_room_that_was_reserved_is_used_and_the_rest_given_back(
    tmp_path: Path, synced: list[int]
) -> None:
    room = tmp_path / "room"
    room.write_bytes(bytes(100))
    same = number(room)
    write_synced(room, b"short")
    assert (number(room), room.read_bytes(), synced) == (same, b"short", [same])


@pytest.mark.parametrize("there", [b"old", None], ids=["replaced", "new"])
@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_full_disk_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bytes | None, call: str
) -> None:
    path = tmp_path / "1.json"
    if there is not None:
        path.write_bytes(there)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os if call == "fsync" else Path, call, full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert [one.read_bytes() for one in tmp_path.iterdir()] == ([] if there is None else [there])


def test_clean_up_does_not_hide_what_went_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(code: int) -> Callable[..., None]:
        def attempt(*_: Any, **__: Any) -> None:
            raise OSError(code, os.strerror(code))

        return attempt

    monkeypatch.setattr(Path, "rename", fails(errno.ENOSPC))
    monkeypatch.setattr(Path, "unlink", fails(errno.EROFS))
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "1.json", b"new")


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_kill_leaves_a_hidden_file_and_the_next_write_succeeds(tmp_path: Path, call: str) -> None:
    path = tmp_path / "1.json"
    path.write_bytes(b"old")

    def killed() -> None:
        def die(*_: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(os if call == "fsync" else Path, call, die)
        write_whole(path, b"new")

    process = multiprocessing.get_context("fork").Process(target=killed)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    left = [one.name for one in tmp_path.iterdir() if one != path]
    assert len(left) == 1
    assert left[0].startswith(".1.json.")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_permissions_are_those_asked_for_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    usual = os.umask(0o027)
    try:
        write_whole(tmp_path / "1.json", b"{}", mode=mode)
        write_whole(tmp_path / "2.json", b"{}")
    finally:
        os.umask(usual)
    assert (tmp_path / "1.json").stat().st_mode & 0o777 == mode
    assert (tmp_path / "2.json").stat().st_mode & 0o777 == 0o640


def test_a_new_file_never_replaces_another(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "plan.toml", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_a_new_file_on_a_file_system_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "hardlink_to", refused)
    write_new(tmp_path / "1.json", b"first")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "1.json", b"second")
    draft = tmp_path / "draft"
    draft.write_bytes(b"third")
    name_new(draft, tmp_path / "2.json")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "1.json": b"first",
        "2.json": b"third",
    }
