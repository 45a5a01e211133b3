"""`congenial infer`: a posterior from a bundle alone, and what a naive reading would have said."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from congenial.cli.command_options import BundleFolder, Json, NationPart, asked_part, with_examples
from congenial.cli.output import (
    Document,
    complain,
    emit,
    line,
    say,
    warn,
    working,
)
from congenial.data.advance import Advance
from congenial.errors import InferenceError, SchemaError
from congenial.inference.inference import Chain
from congenial.inference.naive import coverage
from congenial.inference.naive import naive as taken_for_the_truth
from congenial.inference.options import RUN, infer_from_options, model_from_options
from congenial.kinds.registry import by_name
from congenial.mechanisms.cell_labels import beside_label
from congenial.publication.bundle import read
from congenial.report import pictures
from congenial.report.charts import chart
from congenial.report.words import duration

if TYPE_CHECKING:
    from congenial.data.schema import Schema

_MOST_ROWS = 40
LONG = 3  # minutes beyond which a warning is due
EVERY = 60  # seconds between two lines about how far a long run is
SIMULATED = 20  # releases for the coverage, unless asked for otherwise
_SHOWN = ("mean", "sd", "low", "high", "r_hat", "effective")


@with_examples(
    "congenial infer bundles/state-summary --model poisson",
    "congenial infer bundles/sex-by-age --model poisson --set by=state,age",
    "congenial infer bundles/counts --model multinomial --set draws=8000 --naive",
    "congenial infer bundles/counts --model poisson --set 'prior=gamma(1, 0.01)' --json",
)
def infer(
    bundle: BundleFolder,
    model: Annotated[
        str,
        typer.Option(
            help="poisson, negative_binomial, binomial, multinomial, normal, linear or logistic."
        ),
    ],
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE: by, prior, exposure, draws, seed, method, ..."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals, such as 0.95.")] = 0.9,
    naive: Annotated[
        bool,
        typer.Option(
            "--naive",
            help="Also show the analysis that ignores the noise, and how often its intervals "
            "contain the truth in simulated releases.",
        ),
    ] = False,
    simulations: Annotated[
        int, typer.Option(min=0, help="With --naive: how many releases to simulate; 0 for none.")
    ] = SIMULATED,
    part: NationPart = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the summary, the draws and a picture to this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit a statistical model to a bundle, noise included.

    Draws from the posterior, with the exact noise of the release in the likelihood. Reads the
    bundle only; spends nothing.
    """
    chosen = dict(_pair(option) for option in options or [])
    if not 0 < level < 1:
        raise InferenceError(f"level {level:g} is not between 0 and 1.", remedy="Use 0.9 or 0.95.")
    with working("inferring") as progress:
        release = _read(bundle, part)
        chain = Chain(progress=_clock(progress, _why_slow(release)))
        posterior = infer_from_options(release, model, chosen, chain)
        taken, covered = None, None
        if naive:
            progress("simulating releases like this one")
            taken, covered = _naive(release, model, chosen, posterior, level, simulations)
    document: Document = {
        "bundle": str(bundle),
        **({} if part is None else {"part": part}),
        "model": model,
        "method": posterior.method,
        "level": level,
        "notes": list(posterior.notes),
        "warnings": list(posterior.warnings),
        "summary": posterior.to_dicts(level),
        "naive": None if taken is None else taken.to_dicts(level),
        "coverage": covered,
    }
    if not as_json:
        _show(document, release.schema)
    if out is not None:
        document["files"] = [str(path) for path in _write(posterior, taken, document, out)]
    if as_json:
        emit(document)
    else:
        for path in document.get("files", ()):
            line("Wrote", path)


def _clock(progress: Callable[[str], None], why: str) -> Callable[[int, int, float], None]:
    """Words about how far the chains are; a warning, once, where they will take long.

    Where no spinner is shown, a line every minute says how far a long run is.
    """
    last: float | None = None

    def tell(done: int, of: int, seconds: float) -> None:
        nonlocal last
        minutes, now = seconds / 60, time.monotonic()
        if minutes > LONG and last is None:
            last = now
            because = f": {why}" if why else ""
            warn(f"this will take about {duration(minutes)} or more{because}.")
        left = f", about {duration(minutes)} left" if minutes > 1 else ""
        words = f"inferring: step {done:,} of {of:,}{left}"
        progress(Advance("inferring", done / of, f"step {done:,} of {of:,}"))
        if last is not None and now - last > EVERY and not sys.stderr.isatty():
            last = now
            complain(words, lead="")

    return tell


def _why_slow(release: Any) -> str:
    """What makes chains slow for this release, where that is known."""
    return by_name(release.kind).why_slow(release)


def _read(bundle: Path, part: str | None) -> Any:
    """A bundle whose law is known."""
    release = asked_part(read(bundle), part)
    instead = by_name(release.kind).not_inferred(release)
    if instead:
        raise InferenceError(
            f"'{bundle}' holds {release.kind}, not protected tables.",
            remedy=f"`congenial infer` needs protected tables. {instead}",
        )
    return release


def _naive(
    release: Any, model: str, given: dict[str, str], posterior: Any, level: float, simulations: int
) -> tuple[Any, Document | None]:
    """The release taken for the truth, and how often both kinds of intervals cover."""
    model_options = {key: value for key, value in given.items() if key not in RUN}
    bound_model = model_from_options(release, model, model_options)
    taken = taken_for_the_truth(release, bound_model)
    if not simulations:
        return taken, None
    if release.kind == "tables":
        return taken, {"why_not": "simulation works for releases of one table only."}
    try:
        naive_coverage = coverage(
            release,
            bound_model,
            releases=simulations,
            level=level,
            draws=400,
            given=posterior,
            chain=Chain(warmup=300, check=False),
        )
    except InferenceError as reason:
        return taken, {"why_not": str(reason)}
    return taken, {
        "words": naive_coverage.words,
        "releases": naive_coverage.releases,
        "intervals": naive_coverage.intervals,
        "valid": naive_coverage.valid,
        "naive": naive_coverage.naive,
        "standard_error": naive_coverage.standard_error,
    }


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise InferenceError(
            f"--set {text!r} is not KEY=VALUE.", remedy="For example: --set by=county."
        )
    return key.strip(), value.strip()


def _write(posterior: Any, taken: Any, document: Document, folder: Path) -> list[Path]:
    """summary.json, draws.parquet, and one picture per parameter, naive intervals beside."""
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "summary.json", folder / "draws.parquet"]
    written[0].write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    draws = posterior.draws
    columns = {
        name if values[0, 0].size == 1 else f"{name}[{i}]": pa.array(
            values.reshape(values.shape[0] * values.shape[1], -1)[:, i]
        )
        for name, values in draws.items()
        for i in range(values[0, 0].size)
    }
    pq.write_table(pa.table(columns), written[1])
    if pictures.available():
        for name in draws:
            beside = None if taken is None or name not in taken.draws else taken
            drawn = posterior.chart(name, document["level"], beside)
            drawn |= {
                "title": f"{name}: posterior means, with {document['level']:.0%} intervals",
                "source": f"model '{document['model']}', from the bundle alone",
            }
            written.append(folder / f"{name}.png")
            chart(drawn).save(str(written[-1]), format="png", scale_factor=2)
    return written


def _show(document: Document, schema: Schema) -> None:
    summary = {
        key: None if document[key] is None else _summary(document[key], schema)
        for key in ("summary", "naive")
    }
    say("infer.txt", **document | summary, numbers=_SHOWN, most=_MOST_ROWS)
    for warning in document["warnings"]:
        warn(warning)


def _summary(rows: list[Document], schema: Schema) -> Document:
    labels = [key for key in rows[0] if key not in (*_SHOWN, "standard_error")]
    return {
        "columns": (*labels, *_SHOWN),
        "rows": [
            [*(_label(schema, key, row) for key in labels), *(f"{row[key]:.4g}" for key in _SHOWN)]
            for row in rows
        ],
    }


def _label(schema: Schema, key: str, row: Document) -> str:
    """A level with its label; what is no axis of the table (the parameter) as it is."""
    try:
        return beside_label(schema, key, row.get(key, ""))
    except SchemaError:
        return str(row.get(key, ""))
