"""The demo's posterior: effective draws for a second of processor time, against version 0.1.0.

Version 0.1.0 writes its own demo: 24 counties x 2 sexes x 23 ages (1,104 cells), population, women
and voting age of every county exact, epsilon = 1. Both versions then infer shares (multinomial) and
rates (Poisson) of all cells from that one bundle: 4,000 draws, each in a process of its own, on one
thread. A first short run compiles and is left out. 0.1.0 runs four chains, of which only steps
after the warm-up are counted; now draws are independent, and all seconds are counted, those that
build the trees of sums too. The third row is today's demo, six tables measured together, which
0.1.0 cannot do: chains of whole tables, steps after the warm-up.

Measured on a busy machine, multinomial, effective draws a second of the worst and the median cell:
0.1.0 99 and 166; now, same bundle, 5,835 and 7,024 (59 and 42 times); today's demo 3,581 and 4,446.
Poisson: 71 and 172; 5,199 and 6,088 (73 and 35 times); today's demo 1,096 and 1,975 (15 and 11).

Effective draws are those of `congenial.sampling.convergence`, over all cells: fewest and median.

Run `python -m benchmarks posteriors_former` in a checkout with history; some minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

FORMER = "a323c5b^"  # the last commit of 0.1.0
STEPS = 1000  # of each of four chains
THREADS = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"
ROOT = Path(__file__).parent.parent
DEMO = "from congenial.cli import main; main()"
PROGRAM = """
import sys, time
import numpy as np
import congenial as cg
from congenial.inference import Chain, Multinomial, Poisson, infer

bundle, model, steps, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
release, model = cg.read(bundle), {"multinomial": Multinomial, "poisson": Poisson}[model]()
infer(release, model, draws=100, seed=5, chain=Chain(4, 5, check=False))
at = []
def progress(done, of, seconds):
    at.append((done, time.process_time()))
begun = time.process_time()
found = infer(
    release, model, draws=4 * steps, seed=5,
    chain=Chain(4, 250, check=False, progress=progress),
)
ended = at[-1][1] if at else time.process_time()
begun = next((when for done, when in at if done >= 250), begun)
(draws,) = found.draws.values()
np.savez(out, draws=draws.reshape(4, steps, -1), seconds=ended - begun)
"""


def former(folder: Path) -> Path:
    """The sources of 0.1.0, taken from the history."""
    made = subprocess.run(["git", "archive", FORMER, "src"], cwd=ROOT, capture_output=True)
    if made.returncode:
        raise SystemExit("the history of version 0.1.0 is not in this checkout: fetch all of it.")
    with tarfile.open(fileobj=BytesIO(made.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder / "src"


def _python(source: Path, *arguments: str) -> None:
    """Run a program with the sources of one version."""
    here = {**os.environ, "PYTHONPATH": str(source), **dict.fromkeys(THREADS, "1")}
    done = [sys.executable, "-c", *arguments]
    subprocess.run(done, env=here, check=True, stdout=subprocess.DEVNULL)


def demo(source: Path, folder: Path) -> Path:
    """The bundle of the large table of a version's demo."""
    _python(source, DEMO, "demo", "--out", str(folder))
    return folder / "bundles" / "sex-by-age"


def measured(source: Path, bundle: Path, model: str) -> dict[str, Any]:
    """Effective draws of the cells' parameters, fewest and median, for a processor second."""
    from congenial.sampling.convergence import effective

    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "found.npz"
        _python(source, PROGRAM, str(bundle), model, str(STEPS), str(file))
        with np.load(file) as found:
            worth, seconds = effective(found["draws"]), float(found["seconds"])
    return {
        "seconds": seconds,
        "fewest_effective": float(worth.min()),
        "fewest_per_second": float(worth.min()) / seconds,
        "median_per_second": float(np.median(worth)) / seconds,
    }


SMALLEST = {"STEPS": 25}


def run() -> list[dict[str, Any]]:
    """A row for each version and model, and how many times the former the present one is."""
    with tempfile.TemporaryDirectory() as name:
        before, now = former(Path(name)), ROOT / "src"
        bundle, today = demo(before, Path(name) / "before"), demo(now, Path(name) / "now")
        return [row for model in ("multinomial", "poisson") for row in _rows(
            model, {"0.1.0": (before, bundle), "now": (now, bundle), "today's demo": (now, today)}
        )]  # fmt: skip


def _rows(model: str, runs: dict[str, tuple[Path, Path]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for version, (source, bundle) in runs.items():
        found = measured(source, bundle, model)
        first = rows[0] if rows else found
        over = {
            f"{one}_over_former": found[f"{one}_per_second"] / first[f"{one}_per_second"]
            for one in ("fewest", "median")
        }
        rows.append({"model": model, "version": version, **found, **over})
    return rows


if __name__ == "__main__":
    from benchmarks.__main__ import table

    print(table(run()))
