"""Room on disk is taken before the draw, and is enough for every kind of release."""

from __future__ import annotations

from pathlib import Path

import pytest

from congenial.publication import claim, workflow
from congenial.publication.claim import Claim
from congenial.publication.plan import Plan
from tests.confidentiality.scenes import SCENES, SYNTHETIC, Columns, Scene, people

LONG = "a county whose name is long " * 4


def crowd() -> Columns:
    columns = people(6000)
    columns["county"] = [LONG + one for one in columns["county"]]
    return columns


# Parts are written one by one into a run that goes on after a full disk: no room is taken first.
ROOMS = [scene for scene in SCENES if scene.kind != "parted"]


def wide() -> Scene:
    """Many synthetic records with long labels; the plan does not say how many."""
    levels = ", ".join(f'"{LONG}{one}"' for one in "ABC")
    return Scene("long", SYNTHETIC.replace('"A", "B", "C"', levels), crowd, ())


def released(scene: Scene, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """Bytes taken, those of what was kept, and those of the bundle."""
    taken, kept = [], []
    take, keep = Claim.take_room, Claim.keep

    def take_too(self: Claim, size: int) -> None:
        taken.append(size)
        take(self, size)

    monkeypatch.setattr(Claim, "take_room", take_too)

    def kept_too(self: Claim, *told: object) -> None:
        keep(self, *told)  # type: ignore[arg-type]
        kept.append(self.kept.stat().st_size)

    monkeypatch.setattr(Claim, "keep", kept_too)
    plan = Plan.load(scene.write(folder))
    if plan.statements:
        workflow.publish(plan)
    place = workflow.release(plan, "made").folder
    return taken[0], kept[0], sum(path.stat().st_size for path in place.iterdir())


@pytest.mark.parametrize("scene", [*ROOMS, wide()], ids=lambda scene: scene.kind)
def test_the_room_that_is_taken_holds_the_bundle(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a bundle is larger than what is set aside for texts alone."""
    monkeypatch.setattr(claim, "TEXTS", 10_000)  # so that texts cannot hide a kind's own part
    taken, kept, size = released(scene, tmp_path, monkeypatch)
    assert max(kept, size) <= taken
    assert taken < 60 * size + 2**20  # and is no absurd amount
