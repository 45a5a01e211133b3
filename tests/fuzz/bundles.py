"""A bundle of each kind, and copies of it with parts replaced and digests made to fit again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from congenial.cli.explain import of_bundle
from congenial.errors import CongenialError
from congenial.publication import workflow
from congenial.publication.bundle import DIGEST, INDEX, read, sha256
from congenial.publication.plan import Plan
from congenial.publication.verification import verify
from tests.confidentiality.scenes import SCENES, people


def make(folder: Path) -> dict[str, Path]:
    """One good bundle of each kind."""
    made = {}
    for scene in SCENES:
        columns = scene.columns if scene.kind in ("statistics", "bounded") else lambda: people(400)
        plan = Plan.load(
            type(scene)(scene.kind, scene.plan, columns, ()).write(folder / scene.kind)
        )
        if plan.statements:
            workflow.publish(plan)
        made[scene.kind] = workflow.release(plan, "made").folder
        assert all(check.holds for check in verify(made[scene.kind]))
    return made


def forge(bundle: Path, copy: Path, changed: Mapping[str, bytes], refit: bool = True) -> None:
    """A copy with some files changed; with `refit` its digests say that nothing was."""
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(bundle, copy)
    for name, content in changed.items():
        (copy / name).write_bytes(content)
    if not refit:
        return
    try:
        index = json.loads((copy / INDEX).read_bytes())
        if isinstance(index["files"], dict):
            fresh = {
                name: sha256((copy / name).read_bytes())
                for name in index["files"]
                if isinstance(name, str) and Path(name).name == name and (copy / name).is_file()
            }
            index["files"] |= fresh
        (copy / INDEX).write_text(json.dumps(index))
    except (ValueError, KeyError, TypeError):
        pass
    (copy / DIGEST).write_text(sha256((copy / INDEX).read_bytes()) + "\n")


def use(bundle: Path) -> None:
    """What an analyst does with a bundle; every one of these may refuse it, in words."""
    for step in (_verified, _explained, ask):
        try:
            step(bundle)
        except CongenialError as error:
            if not str(error):
                raise


def _verified(bundle: Path) -> None:
    assert isinstance(verify(bundle), list)


def _explained(bundle: Path) -> None:
    json.dumps(of_bundle(bundle), default=str)


def ask(bundle: Path) -> None:
    """Everything a release knows of itself."""
    release: Any = read(bundle)
    assert repr(release)
    assert release.guarantee.explain()
    assert release.payload()
    for name in _public_properties(type(release)):
        with suppress(CongenialError):  # some releases have no such thing, and say so
            getattr(release, name)


def _public_properties(kind: type) -> list[str]:
    """All but what `verify` asks, which takes any error for a no."""
    names = [name for name in dir(kind) if not (name.startswith("_") or "follow" in name)]
    found = ((name, getattr(kind, name)) for name in names)
    return [name for name, one in found if isinstance(one, (property, cached_property))]
