"""An entry for the public registry of differential-privacy deployments, as YAML.

Fields as in its schema of July 2026 (github.com/opendp/deployments-registry-data). What the
registry calls unprotected quantities are our exact figures. What no bundle says is marked FILL IN.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from congenial.data.advance import Tell, quiet
from congenial.exports.exported_tables import ExportedBundle, plain_name

FILL_IN = "FILL IN"
VARIANTS = {
    "pure": "Pure DP",
    "approximate": "Approximate DP",
    "zero-concentrated": "Zero-concentrated DP",
    "gaussian-draw": "Zero-concentrated DP",
}


class RegistryEntry:
    """One YAML file."""

    name = "registry"
    words = "an entry for the registry of differential-privacy deployments (YAML)"

    def files(
        self,
        bundle: ExportedBundle,
        progress: Tell = quiet,  # noqa: ARG002
    ) -> dict[str, bytes]:
        """The entry."""
        text = "\n".join(yaml_lines(_entry(bundle))) + "\n"
        return {f"{plain_name(bundle.name)}.yaml": text.encode()}

    def left_open(self, bundle: ExportedBundle) -> list[str]:
        """The fields marked FILL IN."""
        return list(_open(_entry(bundle)))


def _entry(bundle: ExportedBundle) -> dict[str, Any]:
    return {
        "url_slug": plain_name(bundle.name),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(bundle),
            "dp_variant": _variant(bundle),
            "privacy_loss": _loss(bundle),
            "deployment_model": {
                "model_name": "Central",
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": _accounting(bundle),
            "implementation": _implementation(bundle),
            "administrative": {"registry_authors": [f"{FILL_IN}: who writes this entry"]},
        },
    }


def _basic(bundle: ExportedBundle) -> dict[str, Any]:
    coded = ("label", "coarser label")
    tables = "; ".join(
        ", ".join(c.name for c in t.columns if c.meaning in coded) for t in bundle.tables
    )
    return {
        "name": bundle.name,
        "data_curators": [f"{FILL_IN}: who publishes the data"],
        "intended_use": f"{FILL_IN}: what the data are for",
        "data_product_type": "Summary statistics",
        "data_product_region": f"{FILL_IN}: of which region",
        "description": f"Tables of counts by {tables}, with intervals. Digest {bundle.digest}.",
        "publication_date": bundle.date,
    }


def _variant(bundle: ExportedBundle) -> dict[str, Any]:
    guarantee = bundle.index["guarantee"]
    kind = guarantee["tradeoff"]["kind"]
    return {
        "variant_name": VARIANTS.get(kind, "Custom"),
        "data_domain": f"{guarantee['domain']} Universe: {guarantee['universe']}",
        "unprotected_quantities": _unprotected(bundle),
    }


def _unprotected(bundle: ExportedBundle) -> str:
    """The figures published exactly, one line each; their values are in the bundle."""
    lines = []
    for statement in bundle.published.told:
        by = f" by {', '.join(statement.by)}" if statement.by else ""
        ground = f" ({statement.because})" if statement.because else ""
        exact = "exact" if statement.relation == "=" else "public bound"
        lines.append(f"- {statement.label}{by}: {exact}{ground}")
    return "\n".join(lines) or "None"


def _loss(bundle: ExportedBundle) -> dict[str, Any]:
    guarantee = bundle.index["guarantee"]
    adjacency, tradeoff = guarantee["adjacency"], guarantee["tradeoff"]
    loss_entry = {}
    for name in ("epsilon", "delta", "rho"):
        if name in tradeoff:
            loss_entry[name] = _number(tradeoff[name])
    return {
        "privacy_unit": "Person-level",
        "privacy_unit_details": f"{adjacency['words']} ({adjacency['metric']})",
        "privacy_parameters": loss_entry,
        "privacy_parameters_details": f"{bundle.promise} Basis: {guarantee['basis']}.",
    }


def _accounting(bundle: ExportedBundle) -> dict[str, str]:
    names = {column.name for each_table in bundle.tables for column in each_table.columns}
    done = []
    if len(bundle.index["description"].get("measured", ())) > 1:
        done.append("Estimates combine all measured tables by generalised least squares.")
    if {"count", "sum"} & names and "estimate" in names:
        done.append(
            "Nonnegative whole counts that have the exact figures, or sums in whole steps, are "
            "fitted to the values as drawn; estimates are published beside them."
        )
    if any(each_table.basis for each_table in bundle.tables):
        done.append("Ends of intervals are cut to what the exact figures allow.")
    words = " ".join(done) or "None: the drawn values are published."
    return {
        "post_processing": words,
        "composition": (
            "Releases on one population are counted together in a ledger, by the largest joint "
            "loss over compared datasets, which agree with the exact figures."
        ),
    }


def _implementation(bundle: ExportedBundle) -> dict[str, str]:
    description = bundle.index["description"]
    law, numerics = description.get("law", ""), description.get("numerics", {})
    exact = Fraction(str(numerics.get("H", 1))) == 0
    drawn = "drawn without numerical error" if exact and not _assumed(bundle) else "see the promise"
    return {
        "preprocessing_and_hyperparameter_tuning": f"{FILL_IN}: how epsilon was chosen",
        "mechanisms": f"{description['mechanism']}: {law}. {bundle.index['software']}, "
        f"noise {drawn}. Randomness: {bundle.index['randomness']}.",
        "justification": f"{FILL_IN}: why these choices were made",
    }


def _assumed(bundle: ExportedBundle) -> bool:
    """Whether the promise takes some numerics for ideal."""
    return any(
        "ideal" in assumption for assumption in bundle.index["guarantee"].get("assumptions", ())
    )


def _number(text: Any) -> float:
    return float(Fraction(str(text)))


# ---- YAML ----------------------------------------------------------------------------------------


def yaml_lines(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """A mapping as YAML: texts in double quotes as in JSON, which YAML reads the same way."""
    for key, entry in value.items():
        if isinstance(entry, Mapping):
            yield f"{indent}{key}:" if entry else f"{indent}{key}: {{}}"
            yield from yaml_lines(entry, indent + "  ")
        elif isinstance(entry, list):
            yield f"{indent}{key}:"
            yield from (f"{indent}  - {_scalar(item)}" for item in entry)
        else:
            yield f"{indent}{key}: {_scalar(entry)}"


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _open(value: Any, where: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _open(entry, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for entry in value:
            yield from _open(entry, where)
    elif isinstance(value, str) and value.startswith(FILL_IN):
        yield where
