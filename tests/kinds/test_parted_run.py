"""The files of a part outlive a power cut: everything is on disk before a step ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from congenial.kinds.parted_run import sync_tree, write


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


def test_a_tree_is_on_disk_with_every_file_and_folder(tmp_path: Path, synced: list[int]) -> None:
    folder = tmp_path / "counts"
    files = [folder / f"part={number}" / "0.parquet" for number in range(2)]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x")
    sync_tree(folder)
    waited_for = [*files, *(file.parent for file in files), folder, tmp_path]
    assert {*synced} >= {path.stat().st_ino for path in waited_for}


def test_a_file_is_on_disk_before_its_name_is(tmp_path: Path, synced: list[int]) -> None:
    write(tmp_path / "1.json", lambda file: file.write(b"{}"))
    assert (tmp_path / "1.json").read_bytes() == b"{}"
    assert synced == [(tmp_path / "1.json").stat().st_ino, tmp_path.stat().st_ino]
