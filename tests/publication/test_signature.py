"""Signatures of bundles: ours by ssh-keygen, ssh-keygen's by us, and everything that is no good."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from congenial import verify
from congenial.cli import app
from congenial.errors import BundleError
from congenial.publication import signature
from congenial.publication.signature import check, load_key, needs_passphrase, public_keys, sign

KEYGEN = shutil.which("ssh-keygen")
needs_keygen = pytest.mark.skipif(KEYGEN is None, reason="there is no ssh-keygen")
BCRYPT = find_spec("bcrypt") is not None
MESSAGE = b'{"format": 1}\n'


def write_key(place: Path, name: str = "key", passphrase: bytes = b"") -> Path:
    key = Ed25519PrivateKey.generate()
    form, coding = serialization.PrivateFormat.OpenSSH, serialization.Encoding.PEM
    lock: Any = serialization.NoEncryption()
    if passphrase:
        lock = serialization.BestAvailableEncryption(passphrase)
    path = place / name
    path.write_bytes(key.private_bytes(coding, form, lock))
    path.chmod(0o600)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    path.with_suffix(".pub").write_bytes(public + b" office\n")
    return path


def keygen(*options: str, message: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    assert KEYGEN is not None
    return subprocess.run([KEYGEN, *options], input=message, capture_output=True, check=False)


@needs_keygen
def test_ssh_keygen_accepts_ours(tmp_path: Path) -> None:
    key = write_key(tmp_path)
    (tmp_path / "allowed").write_text(f"office {key.with_suffix('.pub').read_text()}")
    (tmp_path / "sig").write_text(signature.signature(MESSAGE, load_key(key)))
    options = ["-Y", "verify", "-f", f"{tmp_path}/allowed", "-I", "office"]
    options += ["-n", "congenial-bundle", "-s", f"{tmp_path}/sig"]
    assert keygen(*options, message=MESSAGE).returncode == 0
    assert keygen(*options, message=MESSAGE + b" ").returncode != 0


@needs_keygen
@pytest.mark.parametrize("hashed", ["sha256", "sha512"])
def test_we_accept_those_of_ssh_keygen(tmp_path: Path, hashed: str) -> None:
    keygen("-q", "-t", "ed25519", "-N", "", "-f", f"{tmp_path}/made")
    (tmp_path / "m").write_bytes(MESSAGE)
    common = ["-Y", "sign", "-f", f"{tmp_path}/made", "-O", f"hashalg={hashed}"]
    assert keygen(*common, "-n", "congenial-bundle", f"{tmp_path}/m").returncode == 0
    found = check(MESSAGE, (tmp_path / "m.sig").read_bytes())
    assert found.valid
    assert {found.key} == public_keys(tmp_path / "made.pub")
    assert found.fingerprint.encode() in keygen("-l", "-f", f"{tmp_path}/made.pub").stdout
    assert not check(MESSAGE + b" ", (tmp_path / "m.sig").read_bytes()).valid
    (tmp_path / "m.sig").unlink()
    assert keygen(*common, "-n", "file", f"{tmp_path}/m").returncode == 0
    assert not check(MESSAGE, (tmp_path / "m.sig").read_bytes()).valid  # another purpose


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A key with a passphrase, as ssh-keygen writes it."""
    keygen("-q", "-t", "ed25519", "-N", "correct horse", "-f", f"{tmp_path}/made")
    return tmp_path / "made"


@needs_keygen
@pytest.mark.skipif(BCRYPT, reason="bcrypt is installed: keys with a passphrase are opened")
def test_without_bcrypt_the_error_says_what_to_install(locked: Path) -> None:
    assert needs_passphrase(locked)
    with pytest.raises(BundleError, match=r"pip install 'congenial\[sign\]'"):
        load_key(locked, b"correct horse")
    with pytest.raises(BundleError, match="needs its passphrase"):
        load_key(locked)


@needs_keygen
@pytest.mark.skipif(not BCRYPT, reason="needs the extra 'sign' (bcrypt)")
def test_a_key_with_a_passphrase(locked: Path) -> None:
    path = locked
    assert needs_passphrase(path)
    told = signature.signature(MESSAGE, load_key(path, b"correct horse"))
    assert check(MESSAGE, told.encode()).valid
    for wrong in (None, b"battery"):
        with pytest.raises(BundleError, match="passphrase"):
            load_key(path, wrong)


@pytest.mark.parametrize("content", [b"", b"ssh-ed25519 AAAA", b"\xff" * 90, None])
def test_files_that_are_no_keys(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    for read in (load_key, public_keys):
        with pytest.raises(BundleError, match="key"):
            read(tmp_path / "key")


def test_damage_anywhere_is_noticed(tmp_path: Path) -> None:
    told = bytearray(signature.signature(MESSAGE, load_key(write_key(tmp_path))).encode())
    assert check(MESSAGE, bytes(told)).valid
    for at in range(len(told)):
        changed = told.copy()
        changed[at] = ord("B") if told[at] != ord("B") else ord("C")
        if told[at : at + 1] not in b"=\n" and b"=" not in told[at : at + 2]:
            assert not check(MESSAGE, bytes(changed)).valid, at


def test_allowed_signers(tmp_path: Path) -> None:
    keys = [write_key(tmp_path, f"k{i}").with_suffix(".pub").read_text() for i in range(4)]
    (tmp_path / "allowed").write_text(
        "# who may sign\n"
        f"a {keys[0]}"
        f'b namespaces="congenial-bundle,git" {keys[1]}'
        f'c namespaces="git" {keys[2]}'
        f'd valid-before="20200101" {keys[3]}'
    )
    both = public_keys(tmp_path / "k0.pub") | public_keys(tmp_path / "k1.pub")
    assert public_keys(tmp_path / "allowed") == both


@pytest.mark.parametrize(
    "before",
    [
        "@revoked *",
        "@revoked",
        "@cert-authority *",
        "!office,*",
        "*,!office",
        'command="true"',
        'office command="true"',
        "office no-touch-required",
        'namespaces="congenial-bundle"',
        'office namespaces="!congenial-bundle,congenial-bundle"',
        'office namespaces="congenial-bundle",namespaces="git"',
        'office namespaces="congenial-bundle" verify-required',
        'office namespaces="congenial-bundle',
        "office ssh-rsa AAAA",
    ],
)
def test_what_is_not_understood_before_a_key_is_refused(tmp_path: Path, before: str) -> None:
    """A key that is withdrawn, or bound to conditions, is not taken for a plain one."""
    write_key(tmp_path)
    key = (tmp_path / "key.pub").read_text()
    (tmp_path / "allowed").write_text(f"# signers\noffice {key}{before} {key}")
    with pytest.raises(BundleError, match=r"line 3 of .*cannot be read.*only the public key"):
        public_keys(tmp_path / "allowed")


@pytest.mark.parametrize(
    ("before", "taken"),
    [
        ("", True),
        ("a@example.org", True),
        ("*", True),
        ("a@example.org,b", True),
        ('a NAMESPACES="congenial-bundle"', True),
        ('a Namespaces="git"', False),
        ("a cert-authority", False),
        ('a namespaces="congenial-bundle",valid-after="20200101"', False),
    ],
)
def test_which_lines_of_allowed_signers_count(tmp_path: Path, before: str, taken: bool) -> None:
    for name in ("plain", "other"):
        write_key(tmp_path, name)
    plain, other = ((tmp_path / f"{name}.pub").read_text() for name in ("plain", "other"))
    (tmp_path / "allowed").write_text(f"x {plain}{before} {other}")
    expected = public_keys(tmp_path / "plain.pub")
    expected |= public_keys(tmp_path / "other.pub") if taken else set()
    assert public_keys(tmp_path / "allowed") == expected


# ---- commands ------------------------------------------------------------------------------------

PLAN = """
[data]
source = "people.csv"
[schema]
sex = { levels = ["f", "m"] }
area = { levels = ["a", "b", "c"] }
[[release]]
name = "made"
table = ["sex", "area"]
epsilon = 1
[budget]
epsilon = 2
"""


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    rows = [f"{sex},{area}" for sex in "fm" for area in "abc"] * 5
    (tmp_path / "people.csv").write_text("\n".join(["sex,area", *rows]) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def test_from_a_release_to_its_reader(plan: Path, tmp_path: Path) -> None:
    key, other = write_key(tmp_path), write_key(tmp_path, "other")
    assert run("release", plan, "--sign", key).exit_code == 0
    bundle = tmp_path / "bundles" / "made"
    assert run("verify", bundle).exit_code == 0
    assert run("verify", bundle, "--signer", key.with_suffix(".pub")).exit_code == 0
    assert run("verify", bundle, "--signer", other.with_suffix(".pub")).exit_code == 1
    with pytest.raises(BundleError, match="signed already"):
        sign(bundle, load_key(other))
    forged = tmp_path / "forged"
    shutil.copytree(bundle, forged)
    (forged / "release.json").write_bytes((bundle / "release.json").read_bytes() + b"\n")
    told = {one.what: one.holds for one in verify(forged, signer=key.with_suffix(".pub"))}
    assert not told["release.json.sig is a valid signature of release.json"]
    assert not told["the bundle is signed by the key you gave"]
    (bundle / signature.SIGNATURE).write_text("no signature")
    assert run("verify", bundle).exit_code == 1
    (bundle / signature.SIGNATURE).unlink()
    assert run("verify", bundle).exit_code == 0
    assert run("verify", bundle, "--signer", key.with_suffix(".pub")).exit_code == 1
    assert run("sign", bundle, "--key", other).exit_code == 0
    assert run("verify", bundle, "--signer", other.with_suffix(".pub")).exit_code == 0


def test_a_key_that_does_not_open_is_found_before_anything_is_drawn(
    plan: Path, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("no key")
    assert run("release", plan, "--sign", tmp_path / "key").exit_code == 6
    assert not (tmp_path / "bundles").exists()
    assert not list(tmp_path.glob("*.sqlite"))
