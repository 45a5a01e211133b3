"""Signatures of bundles: Ed25519, in the format of OpenSSH ("SSHSIG"), over release.json.

release.json lists the digest of every other file, so one signature covers the folder. It stands
beside it as release.json.sig, and `ssh-keygen -Y verify -n congenial-bundle` checks it too.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from congenial.data.arguments import PATH, expect
from congenial.data.durable_files import write_new
from congenial.errors import BundleError
from congenial.publication.bundle import INDEX, read_bytes, read_index

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNATURE = "release.json.sig"
NAMESPACE = b"congenial-bundle"
LARGEST_KEY = 2**16  # bytes of a key's file, or of a signature
_MAGIC, _KIND = b"SSHSIG", b"ssh-ed25519"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}
_PUBLIC = re.compile(r"^(?P<before>.*?)(?:^|\s)ssh-ed25519\s+(?P<key>[A-Za-z0-9+/]+={0,2})(?:\s|$)")
_NAMES = r"[^\s,\"=@!][^\s,\"=!]*"  # a principal; not "@revoked", "!name" or an option
_VALUE = r'"[^"\\!]*"'
_OPTION = rf"(?:namespaces={_VALUE}|valid-after={_VALUE}|valid-before={_VALUE}|cert-authority)"
_BEFORE = re.compile(
    rf"(?:{_NAMES}(?:,{_NAMES})*)(?:\s+(?P<options>{_OPTION}(?:,{_OPTION})*))?", re.IGNORECASE
)


def load_key(path: Path, passphrase: bytes | None = None) -> Ed25519PrivateKey:
    """An Ed25519 key as ssh-keygen writes it; BundleError says what is wrong with another file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    content = _content(path)
    try:
        key = load_ssh_private_key(content, passphrase)
    except UnsupportedAlgorithm:
        raise BundleError(
            f"the key '{path}' has a passphrase, and opening it needs the package 'bcrypt'.",
            remedy="Install it (pip install 'congenial[sign]'), use a key without a passphrase, or "
            "sign with: ssh-keygen -Y sign -n congenial-bundle -f KEY release.json",
        ) from None
    except (ValueError, TypeError):
        locked = passphrase is None and needs_passphrase(path)
        why = "needs its passphrase" if locked else "cannot be opened as an OpenSSH private key"
        raise BundleError(
            f"the key '{path}' {why}.",
            remedy="Check the passphrase, or make a key with: ssh-keygen -t ed25519 -f KEY",
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BundleError(
            f"the key '{path}' is not an Ed25519 key.",
            remedy="Make one with: ssh-keygen -t ed25519 -f KEY",
        )
    return key


def needs_passphrase(path: Path) -> bool:
    """Whether a private key's file says that it is encrypted."""
    lines = _content(path).decode("ascii", "replace").splitlines()
    try:
        body = base64.b64decode("".join(line for line in lines if not line.startswith("-")))
        magic, rest = body[:15], body[15:]
        return magic == b"openssh-key-v1\0" and _texts(rest, 1)[0][0] != b"none"
    except (ValueError, IndexError):
        return False


def sign(folder: str | Path, key: Ed25519PrivateKey) -> Path:
    """Write the signature of a bundle into its folder; another one is never overwritten."""
    folder = Path(folder)
    read_index(folder)
    target = folder / SIGNATURE
    content = signature(read_bytes(folder / INDEX), key)
    try:
        write_new(target, content.encode())
    except FileExistsError:
        raise BundleError(
            f"'{folder}' is signed already.", remedy=f"Remove its {SIGNATURE} to sign it again."
        ) from None
    except OSError as reason:
        raise BundleError(f"cannot write '{target}': {reason.strerror}.") from None
    return target


def signature(message: bytes, key: Ed25519PrivateKey) -> str:
    """The signature of a message as text."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    signed = key.sign(_signed(message, b"sha512"))
    parts = (_text(_KIND, raw), NAMESPACE, b"", b"sha512", _text(_KIND, signed))
    body = base64.b64encode(_MAGIC + struct.pack(">I", 1) + _text(*parts)).decode()
    lines = [body[at : at + 70] for at in range(0, len(body), 70)]
    return "\n".join((_BEGIN, *lines, _END, ""))


@dataclass(frozen=True)
class Signed:
    """Whether a signature is right, and the key it was made with."""

    valid: bool
    key: bytes = b""

    @property
    def fingerprint(self) -> str:
        """The key's fingerprint, as ssh-keygen -l prints it."""
        digest = hashlib.sha256(_text(_KIND, self.key)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def check(message: bytes, told: bytes) -> Signed:
    """Whether `told` is a signature of the message for bundles, by the key it names."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        lines = told.decode("ascii").strip().splitlines()
        body = base64.b64decode("".join(lines[1:-1]), validate=True)
        (key, namespace, _, hashed, blob), rest = _texts(body[10:], 5)
        (kind, raw), more = _texts(key, 2)
        (signed_by, value), last = _texts(blob, 2)
        right = (lines[0], lines[-1]) == (_BEGIN, _END) and body[:10] == _MAGIC + b"\0\0\0\1"
        right &= kind == signed_by == _KIND and namespace == NAMESPACE and not (rest + more + last)
        if not right or hashed not in _HASHES:
            return Signed(False)
        Ed25519PublicKey.from_public_bytes(raw).verify(value, _signed(message, hashed))
    except (ValueError, IndexError, InvalidSignature):
        return Signed(False)
    return Signed(True, raw)


def public_keys(source: str | Path) -> set[bytes]:
    """Ed25519 keys of a public key's file, or of a list of allowed signers.

    Lines for other namespaces, authorities and keys with dates are left out: this software does not
    judge them. Anything else before a key that is not understood is refused: it may withdraw it.
    """
    expect(source, PATH, "the signer", "Give the path of a public key.", BundleError)
    lines = _content(Path(source)).decode("utf-8", "replace").splitlines()
    each = (_public(line.strip(), at, source) for at, line in enumerate(lines, 1))
    keys = {key for key in each if key is not None}
    if not keys:
        raise BundleError(
            f"'{source}' has no Ed25519 key for {NAMESPACE.decode()}.",
            remedy="Give the publisher's public key (a .pub file) or a list of allowed signers.",
        )
    return keys


def _public(line: str, at: int, source: str | Path) -> bytes | None:
    match = _PUBLIC.match(line)
    if match is None or line.startswith("#") or not _allows(match["before"].strip(), at, source):
        return None
    try:
        (kind, raw), rest = _texts(base64.b64decode(match["key"], validate=True), 2)
    except (ValueError, IndexError, binascii.Error):
        return None
    return raw if kind == _KIND and len(raw) == 32 and not rest else None


def _allows(before: str, at: int, source: str | Path) -> bool:
    """Whether what stands before a key allows it to sign bundles, at any time, by itself."""
    match = _BEFORE.fullmatch(before) if before else None
    options = [] if match is None else re.findall(_OPTION, match["options"] or "", re.IGNORECASE)
    names = [option.partition("=")[0].lower() for option in options]
    if (before and match is None) or len(set(names)) < len(names):
        raise BundleError(
            f"line {at} of '{source}': the text before the key cannot be read.",
            remedy='Write names and at most the option namespaces="congenial-bundle", or give a '
            "file with only the public key.",
        )
    spaces = [option.partition("=")[2].strip('"') for option in options if "=" in option]
    return not options or (names == ["namespaces"] and NAMESPACE.decode() in spaces[0].split(","))


def _signed(message: bytes, hashed: bytes) -> bytes:
    return _MAGIC + _text(NAMESPACE, b"", hashed, _HASHES[hashed](message).digest())


def _text(*parts: bytes) -> bytes:
    """Texts with their lengths, as SSH writes them."""
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def _texts(content: bytes, many: int) -> tuple[list[bytes], bytes]:
    """The first texts, and what follows them."""
    texts = []
    for _ in range(many):
        if len(content) < 4:
            raise IndexError
        end = 4 + int.from_bytes(content[:4], "big")
        if end > len(content):
            raise IndexError
        texts.append(content[4:end])
        content = content[end:]
    return texts, content


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path, LARGEST_KEY)
    except BundleError:
        raise BundleError(
            f"the key '{path}' cannot be read.", remedy="Give the path of the key's file."
        ) from None
