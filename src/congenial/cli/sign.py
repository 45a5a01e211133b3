"""`congenial sign`: put a publisher's signature into a bundle."""

from __future__ import annotations

from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.command_options import BundleFolder, Json, with_examples
from congenial.cli.output import answer

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
    from congenial.publication import signature

    written = signature.sign(bundle, open_key(key, passphrase_file))
    answer("sign.txt", as_json, signed={"bundle": str(bundle), "signature": str(written)})


def open_key(path: Path, passphrase_file: Path | None) -> Ed25519PrivateKey:
    """The key, with its passphrase from a file or from the person at the terminal."""
    from congenial.publication import signature
    from congenial.publication.bundle import read_text

    passphrase = None
    if signature.needs_passphrase(path):
        if passphrase_file is None:
            passphrase = getpass(f"Passphrase of {path}: ")
        else:
            passphrase = (read_text(passphrase_file).splitlines() or [""])[0]
    return signature.load_key(path, None if passphrase is None else passphrase.encode())
