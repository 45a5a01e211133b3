"""`congenial infer`: a posterior from a bundle alone, and what a naive reading would have said."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.output import (
    Document,
    Json,
    emit,
    examples,
    heading,
    line,
    paragraph,
    table,
    warn,
    working,
)
from congenial.errors import BundleError

_MOST_ROWS = 40
_SHOWN = ("mean", "sd", "low", "high", "r_hat", "effective")


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=examples(
            "congenial infer bundles/sex-by-age --model poisson --set by=county",
            "congenial infer bundles/counts --model multinomial --set draws=8000 --naive",
            "congenial infer bundles/counts --model poisson --set 'prior=gamma(1, 0.01)' --json",
        )
    )(infer)


def infer(
    bundle: Annotated[Path, typer.Argument(help="The bundle's folder.")],
    model: Annotated[str, typer.Option(help="poisson, binomial, multinomial, normal, ...")],
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE: by, prior, exposure, draws, seed, method, ..."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    naive: Annotated[
        bool,
        typer.Option("--naive", help="Show what taking the release for the truth gives."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the summary, the draws and a picture to this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Infer from a bundle: the exact law of the noise in place of the noise. Spends nothing."""
    given = dict(_pair(one) for one in options or [])
    with working("inferring"):
        from congenial.inference.naive import naive as naive_posterior
        from congenial.inference.options import RUN, infer_from_options, model_from_options
        from congenial.mechanisms.release import Release
        from congenial.release.bundle import read

        release = read(bundle)
        if not isinstance(release, Release):
            raise BundleError(
                f"'{bundle}' holds {release.kind}, not a protected table.",
                remedy="congenial infer works on tables; see docs/how-to for synthetic records.",
            )
        posterior = infer_from_options(release, model, given)
        wrong = None
        if naive:
            kept = {key: value for key, value in given.items() if key not in RUN}
            wrong = naive_posterior(release, model_from_options(release, model, kept))
    document: Document = {
        "bundle": str(bundle),
        "model": model,
        "method": posterior.method,
        "level": level,
        "notes": list(posterior.notes),
        "warnings": list(posterior.warnings),
        "summary": posterior.summary(level),
        "naive": None if wrong is None else wrong.summary(level),
    }
    if out is not None:
        document["files"] = [str(path) for path in _write(posterior, document, out)]
    emit(document) if as_json else _show(document)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise BundleError(f"--set {text!r} is not KEY=VALUE.", remedy="Try --set by=county.")
    return key.strip(), value.strip()


def _write(posterior: object, document: Document, folder: Path) -> list[Path]:
    """summary.json, draws.parquet, and one picture per parameter."""
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    from congenial.papers.charts import chart
    from congenial.release import pictures

    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "summary.json", folder / "draws.parquet"]
    written[0].write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    draws = posterior.draws  # type: ignore[attr-defined]
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
            found = posterior.chart(name) | {"title": f"{name}: posterior means"}  # type: ignore[attr-defined]
            written.append(folder / f"{name}.png")
            chart(found).save(str(written[-1]), format="png", scale_factor=2)
    return written


def _show(document: Document) -> None:
    heading(f"Posterior under '{document['model']}' ({document['method']})")
    _summary(document["summary"])
    if document["naive"] is not None:
        heading("The naive analysis, for comparison: the release taken for the truth")
        _summary(document["naive"])
    for note in document["notes"]:
        paragraph(f"- {note}")
    for path in document.get("files", ()):
        line("Wrote", path)
    for one in document["warnings"]:
        warn(one)


def _summary(rows: list[Document]) -> None:
    labels = [key for key in rows[0] if key not in (*_SHOWN, "standard_error")]
    shown = [
        [*(row.get(key, "") for key in labels), *(f"{row[key]:.4g}" for key in _SHOWN)]
        for row in rows[:_MOST_ROWS]
    ]
    table((*labels, *_SHOWN), shown, numbers=",".join(_SHOWN))
    if len(rows) > _MOST_ROWS:
        paragraph(f"... {len(rows) - _MOST_ROWS} more; --json or --out has them all.")
