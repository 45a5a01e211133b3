"""How many draws the black-box audit needs to notice noise that is too small by a fifth.

Run `python benchmarks/audit.py`; it takes a few minutes. `proved` is the lower bound on the
parameter over what is promised: above 1 the promise is refuted. The sound mechanism stays below.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

from congenial.audit.black_box import black_box
from congenial.audit.universes import FURTHER, UNIVERSES
from congenial.mechanisms.calibrate import calibrate
from congenial.mechanisms.mechanism import Mechanism
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import SeededRandomness

SEED = 9
DRAWS = (100_000, 1_000_000)
TARGETS = {
    "epsilon = 0.1": ("congenial", lambda under: Guarantee.pure(Fraction(1, 10), under)),
    "epsilon = 1": ("congenial", lambda under: Guarantee.pure(1, under)),
    "epsilon = 8": ("congenial", lambda under: Guarantee.pure(8, under)),
    "rho = 0.1": (
        "congenial_gaussian",
        lambda under: Guarantee.zero_concentrated(Fraction(1, 10), under),
    ),
    "rho = 1": ("congenial_gaussian", lambda under: Guarantee.zero_concentrated(1, under)),
    "mu = 0.1": ("kernel_gaussian", lambda under: Guarantee.gaussian(Fraction(1, 10), under)),
    "mu = 1": ("kernel_gaussian", lambda under: Guarantee.gaussian(1, under)),
}


def less_noise(mechanism: Mechanism) -> Mechanism:
    scale = mechanism.description.scale
    scale = scale * 16 / 25 if mechanism.description.norm == "l2" else scale * 5 / 4
    return replace(mechanism, description=replace(mechanism.description, scale=scale))


SMALLEST = {"DRAWS": (2000,), "TARGETS": {"epsilon = 1": TARGETS["epsilon = 1"]}}


def run() -> list[dict[str, Any]]:
    rows = []
    for universe in (*UNIVERSES, *FURTHER):
        if universe.label not in ("voting age", "both margins"):
            continue
        for promise, (name, target) in TARGETS.items():
            aim = promise.split(" ")[0]
            sound = calibrate(name, target(universe.adjacency), universe.release)
            for draws in DRAWS:
                start = time.process_time()
                found = [
                    black_box(
                        mechanism,
                        sound.guarantee.tradeoff,
                        pairs=4,
                        draws=draws,
                        randomness=SeededRandomness(SEED),
                    )
                    for mechanism in (sound, less_noise(sound))
                ]
                seconds = (time.process_time() - start) / 2
                limit = found[0].limits[aim]  # type: ignore[index]
                rows.append(
                    {
                        "universe": universe.label,
                        "promise": promise,
                        "draws": draws,
                        "proved / promised, sound": found[0].proved(aim) / limit,  # type: ignore[arg-type]
                        "the same, noise x 0.8": found[1].proved(aim) / limit,  # type: ignore[arg-type]
                        "noticed": found[1].violated,
                        "seconds": seconds,
                    }
                )
    return rows


if __name__ == "__main__":
    from benchmarks.__main__ import table

    print(table(run()))
