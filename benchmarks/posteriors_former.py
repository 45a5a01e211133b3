"""The demo's posterior: effective draws for a second of processor time, against version 0.1.0.

One table of 24 areas x 2 sexes x 23 ages, much as in `congenial demo`: population, women and voting
age of every area are exact, noise is double geometric. Rates of all 1,104 cells by `Poisson()`.
Both versions draw the same bundle and run one after the other, each in a process of its own, with
chains of the same length; only steps after the warm-up count. The code of 0.1.0 comes out of this
repository's history.

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
STEPS = 500  # of each of four chains, at least, after as many that are not counted
ROOT = Path(__file__).parent.parent
PROGRAM = """
import sys, time
import numpy as np
import congenial as cg
from congenial.inference import Chain, Poisson, infer

out, steps = sys.argv[1], int(sys.argv[2])
edges = [0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
rng = np.random.default_rng(5)
schema = cg.Schema.from_dict({
    "area": {"levels": [f"area {i}" for i in range(24)]},
    "sex": {"levels": ["female", "male"]},
    "age": {"edges": edges, "top": "85+"},
})
widths = np.diff([*edges, 95])
share = rng.dirichlet(np.ones(24))[:, None, None] * np.full((1, 2, 1), .5) * widths / widths.sum()
counts = rng.multinomial(300_000, share.reshape(-1)).reshape(24, 2, 23)
table = cg.Table(schema, schema.names, counts)
figures = cg.publish(
    table, cg.total(by="area"), cg.count("sex = 'female'", by="area"),
    cg.count("age >= 18", by="area"),
)
promise = cg.Guarantee.pure(1, under=cg.SemiAdjacent(figures))
release = cg.calibrate("congenial", promise).release(table, cg.SeededRandomness(5))
at = []
def progress(done, of, seconds):
    at.append((done, time.process_time()))
found = infer(
    release, Poisson(), draws=4 * steps, seed=5,
    chain=Chain(4, steps, check=False, progress=progress),
)
begun = next(when for done, when in at if done >= steps)
np.savez(out, draws=found.draws["rate"], seconds=at[-1][1] - begun)
"""


def former(folder: Path) -> Path:
    """The sources of 0.1.0, taken from the history."""
    made = subprocess.run(["git", "archive", FORMER, "src"], cwd=ROOT, capture_output=True)
    if made.returncode:
        raise SystemExit("the history of version 0.1.0 is not in this checkout: fetch all of it.")
    with tarfile.open(fileobj=BytesIO(made.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder / "src"


def measured(source: Path, folder: Path, steps: int) -> tuple[float, float]:
    """Fewest effective draws of a rate, and processor seconds for them."""
    from congenial.sampling.convergence import effective

    file = folder / "found.npz"
    here = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "-c", PROGRAM, str(file), str(steps)], env=here, check=True)
    with np.load(file) as found:
        draws = found["draws"].reshape(*found["draws"].shape[:2], -1)
        return float(np.min(effective(draws))), float(found["seconds"])


def run() -> list[dict[str, Any]]:
    """One row for each version, and how many times the first the second is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = {"0.1.0": former(folder), "now": ROOT / "src"}
        rows: list[dict[str, Any]] = []
        for version, source in sources.items():
            worth, seconds = measured(source, folder, STEPS)
            rate = {"effective_per_second": worth / seconds}
            rows.append({"version": version, "fewest_effective": worth, "seconds": seconds, **rate})
    ratio = rows[1]["effective_per_second"] / rows[0]["effective_per_second"]
    return [*rows, {"version": "now over 0.1.0", "effective_per_second": ratio}]


if __name__ == "__main__":
    from benchmarks.__main__ import table

    print(table(run()))
