"""Folders for confidential numbers: only their owner may look inside, and none is in a bundle."""

from __future__ import annotations

from pathlib import Path

from congenial.errors import BundleError
from congenial.publication.bundle import INDEX


def private_folder(folder: Path) -> Path:
    """Make a folder for confidential numbers; BundleError inside a bundle, or where it cannot be.

    A folder that is there already keeps its mode: what is put into it is to be made private too.
    """
    if any((one / INDEX).exists() for one in (folder, *folder.resolve().parents)):
        raise BundleError(
            "confidential numbers must not be written into a bundle.",
            remedy="Choose another folder with --out.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as reason:
        raise BundleError(f"'{folder}' cannot be written: {reason.strerror}.") from None
    return folder


def private_file(path: Path) -> Path:
    """The file at `path`, made if need be, that only its owner may read."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path
