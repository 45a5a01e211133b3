"""`congenial release` draws, the only command that spends privacy; `congenial sign` signs."""

from __future__ import annotations

from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.command_options import BundleFolder, Json, PlanFile, with_examples
from congenial.cli.output import Document, answer, emit, say, warn, working
from congenial.publication import bundle, signature, workflow
from congenial.publication.bundle import read_text
from congenial.publication.claim import begun
from congenial.publication.plan import Plan
from congenial.publication.workflow import refuse_excess
from congenial.sampling.randomness import SeededRandomness

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PassphraseFile = Annotated[
    Path | None,
    typer.Option(help="File whose first line is the key's passphrase [default: ask for it]."),
]


@with_examples("congenial sign bundles/sex-by-age --key ~/.ssh/id_ed25519")
def sign(
    bundle: BundleFolder,
    key: Annotated[Path, typer.Option(help="Ed25519 private key, as ssh-keygen writes it.")],
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Sign a bundle, so that `verify --signer` detects a forged one."""
    written = signature.sign(bundle, open_key(key, passphrase_file))
    answer("sign.txt", as_json, signed={"bundle": str(bundle), "signature": str(written)})


def open_key(path: Path, passphrase_file: Path | None) -> Ed25519PrivateKey:
    """The key, with its passphrase from a file or from the person at the terminal."""
    passphrase = None
    if signature.needs_passphrase(path):
        if passphrase_file is None:
            passphrase = getpass(f"Passphrase of {path}: ")
        else:
            passphrase = (read_text(passphrase_file).splitlines() or [""])[0]
    return signature.load_key(path, None if passphrase is None else passphrase.encode())


@with_examples(
    "congenial release plan.toml",
    "congenial release plan.toml --name sex-by-age --out to-publish",
)
def release(
    plan: PlanFile,
    name: Annotated[
        list[str] | None, typer.Option(help="A release of the plan; repeatable [default: all].")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the bundles [default: bundles, beside the plan]."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeatable noise, for tests only: NOT FOR PUBLICATION.")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(help="Ed25519 private key to sign the bundles with.")
    ] = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Draw the noise, write the protected tables, spend their budget.

    Records what each release costs, then writes a folder (a bundle) for each.
    """
    key = None if sign is None else open_key(sign, passphrase_file)
    loaded = Plan.load(plan)
    names = list(dict.fromkeys(name)) if name else [section.name for section in loaded.release]
    for each_name in names:
        loaded.named(each_name)
        if not begun(loaded, _folder(loaded, out, each_name)):
            bundle.check_absent(_folder(loaded, out, each_name))
    with working("checking the budget"):
        refuse_excess(loaded, names)
    done: list[Document] = []
    try:  # what was drawn is reported even when a later release is refused
        for each_name in names:
            done.append(carry_out(loaded, each_name, out, seed))
            if key is not None:
                done[-1]["signature"] = str(signature.sign(done[-1]["folder"], key))
            if not as_json:
                show(done[-1])
    except KeyboardInterrupt:
        warn("the cost of what was drawn stays spent; `congenial ledger finish` completes it.")
        raise
    finally:
        if as_json and done:
            emit({"releases": done})


def _folder(plan: Plan, out: Path | None, name: str) -> Path:
    return (plan.folder / "bundles" if out is None else out) / name


def carry_out(plan: Plan, name: str, out: Path | None = None, seed: int | None = None) -> Document:
    """Draw one release, and say as plain data what came out."""
    with working(f"preparing '{name}'") as progress:
        randomness = None if seed is None else SeededRandomness(seed)
        if randomness is not None:
            warn(
                f"NOT FOR PUBLICATION: '{name}' is drawn from a seed: whoever knows it can remove "
                "the noise."
            )
        result = workflow.release(
            plan, name, _folder(plan, out, name), randomness=randomness, progress=progress
        )
    return {
        "name": name,
        "folder": str(result.folder),
        "report": str(result.folder / "report.html"),
        "digest": result.digest,
        "publishable": result.release.publishable,
        "randomness": result.release.randomness,
        "guarantee": result.release.guarantee.to_dict(),
        "in_short": result.release.guarantee.in_short,
        "promise": result.promise,
        "spent": result.promise[len(result.release.guarantee.explain()) :].strip(),
        "states_people": result.states_people,
    }


def show(document: Document, checks: str = "") -> None:
    """What came out, for people; `checks`: how many of its checks hold, where they were made."""
    say("release.txt", release=document, checks=checks)
