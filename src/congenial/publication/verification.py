"""`verify`: is a bundle whole, and does what it says follow from what it holds?

Digests detect accidents. The checks of content read the bundle and work out again what can be
worked out: sums, labels, the promise, the words. None of this detects a forger who rewrites
everything; a digest published elsewhere does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from congenial._version import __version__
from congenial.data.advance import one_by_one
from congenial.data.arguments import PATH, expect
from congenial.errors import BundleError, CongenialError
from congenial.kinds.kind import Check, Files, Tell
from congenial.kinds.registry import by_name
from congenial.ledger.spent_and_left import guess_after_all, is_account
from congenial.privacy.guarantee import Guarantee
from congenial.publication.bundle import (
    COMMON,
    DIGEST,
    INDEX,
    FilesOf,
    as_json,
    checked_folders,
    index_of,
    read,
    read_bytes,
    read_index,
    read_text,
    sha256,
)
from congenial.publication.bundle_texts import citation, published_csv, readme
from congenial.publication.signature import LARGEST_KEY, SIGNATURE, check, public_keys
from congenial.report.render import differences, stated
from congenial.sampling.randomness import KeyedRandomness, SystemRandomness

ADDED = "nothing was added"
DIGESTS = "comparing files with their digests"

FIELDS = {  # of release.json
    *("bundle", "kind", "name", "software", "created", "description", "guarantee", "promise"),
    *("randomness", "publishable", "files"),
}
SIGNED = "the bundle is signed by the key you gave"
SYSTEM = "drawn from the system's randomness"
OURS = "it was written by this version of the software"
PUBLISHABLE = (SystemRandomness.label, KeyedRandomness.label)


def verify(
    folder: str | Path,
    digest: str | None = None,
    signer: str | Path | None = None,
    part: str | None = None,
    progress: Tell = lambda _: None,
) -> list[Check]:
    """Check a bundle's digests, its signature, and its content.

    digest: one published elsewhere. signer: file of the publisher's public key, or of allowed
    signers; a bundle that none of them signed then fails. part: of a bundle that is cut into parts,
    look into the files of this one only. progress: told how far it is.

    A line for each check, in order; the bundle is sound if all of them hold. Sums, labels, the
    promise and every sentence are worked out again from what the bundle holds. What cannot be
    worked out again is in docs/known-limits: above all, that the values were drawn from their law.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     verify(folder)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    congenial.errors.BundleError: ...
    """
    expect(folder, PATH, "the folder", "Give its path.", BundleError)
    expect(digest, (str, type(None)), "the digest", "Give its text.", BundleError)
    expect(part, (str, type(None)), "the part", "Give its name.", BundleError)
    folder = Path(folder)
    keys = None if signer is None else public_keys(signer)
    index = read_index(folder)
    actual = sha256(read_bytes(folder / INDEX))
    stated = read_text(folder / DIGEST).strip()
    own = not any((folder / name).is_symlink() for name in (INDEX, DIGEST))
    checks = [Check("release.json matches DIGEST.txt", actual == stated and own)]
    if digest is not None:
        checks.append(Check("release.json matches the digest you gave", actual == digest.strip()))
    for name, expected in one_by_one(sorted(_manifest(index).items()), DIGESTS, progress):
        path = folder / name
        same = path.is_file() and not path.is_symlink() and sha256(read_bytes(path)) == expected
        checks.append(Check(f"{name} is as released", same))
    checks.extend(_folders(folder, index, part, progress))
    checks.extend(_signature(folder, keys))
    files_of_bundle = {*_manifest(index), *checked_folders(index), INDEX, DIGEST, SIGNATURE}
    extra = sorted(path.name for path in folder.iterdir() if path.name not in files_of_bundle)
    checks.append(Check(ADDED, not extra, ", ".join(extra)))
    if index.get("software") != f"congenial {__version__}":
        software = (
            f"it says {str(index.get('software'))[:40]!r}, and this is congenial {__version__}"
        )
        checks.append(Check(OURS, False, f"{software}: verify it with the version that wrote it"))
    if all(check.holds for check in checks):
        try:
            with np.errstate(all="ignore"):  # forged numbers may overflow; what follows says so
                checks.extend(_content(folder, index, part, progress))
        except CongenialError as error:
            checks.append(Check("the bundle can be read", False, str(error)))
        except Exception as reason:  # noqa: BLE001 - a stranger's bundle may be wrong in any way
            what = "the content of the bundle can be interpreted"
            checks.append(Check(what, False, type(reason).__name__))
    return checks


def verification_document(
    folder: Path,
    digest: str | None = None,
    signer: Path | None = None,
    part: str | None = None,
    progress: Tell = lambda _: None,
) -> dict[str, Any]:
    """The checks of `verify` as plain data, for `congenial verify` and the desk."""
    checks = verify(folder, digest, signer, part, progress)
    return {
        "bundle": str(folder),
        "holds": all(check.holds for check in checks),
        "only_added": [check.what for check in checks if not check.holds] == [ADDED],
        "digest_given": digest is not None,
        "signer_given": signer is not None,
        "checks": [
            {"what": check.what, "holds": check.holds, "detail": check.detail} for check in checks
        ],
    }


def _folders(
    folder: Path, index: Mapping[str, Any], part: str | None, progress: Tell
) -> list[Check]:
    """Whether the files in folders are as released, each read once, a little at a time."""
    checks = []
    files = Files(FilesOf(folder, index), index)
    part_name = None if part is None else by_name(index.get("kind")).part_file(files, part)
    for name, inside in sorted(checked_folders(index).items()):
        looked = [file for file in sorted(inside) if part_name in (None, file)]
        place = folder / name
        if place.is_symlink() or not place.is_dir():
            checks.append(Check(f"{name}/ is as released", False, "it is not there"))
            continue
        extra = sorted(path.name for path in place.iterdir() if path.name not in inside)
        other = [
            file
            for file in one_by_one(looked, f"{DIGESTS}: {name}/", progress)
            if digest_of(place / file) != inside[file]
        ]
        detail = ", ".join([*other, *extra][:5])
        checks.append(Check(f"{name}/ is as released", not (other or extra), detail))
    return checks


def digest_of(path: Path) -> str:
    """The digest of a file, read a little at a time; empty where it is no file of its own."""
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _signature(folder: Path, keys: set[bytes] | None) -> list[Check]:
    """Whether release.json is signed, where somebody says so or asks for it."""
    path = folder / SIGNATURE
    there = path.exists() or path.is_symlink()
    if not there:
        missing = Check(SIGNED, False, "the bundle has no signature")
        return [] if keys is None else [missing]
    own = path.is_file() and not path.is_symlink()
    signer = check(read_bytes(folder / INDEX), read_bytes(path, LARGEST_KEY)) if own else None
    valid = signer is not None and signer.valid
    detail = signer.fingerprint if signer is not None and valid else ""
    checks = [Check(f"{SIGNATURE} is a valid signature of release.json", valid, detail)]
    if keys is not None:
        checks.append(Check(SIGNED, signer is not None and valid and signer.key in keys, detail))
    return checks


def _content(
    folder: Path, index: Mapping[str, Any], part: str | None, progress: Tell
) -> list[Check]:
    """What the bundle says, against what follows from its parts."""
    progress("reading the bundle")
    files, release = Files(FilesOf(folder, index), index, progress), read(folder)
    kind = by_name(release.kind)
    promised = release.guarantee
    stated = dict(index["guarantee"])
    pairs = stated.pop("adjacency")
    checks = [
        *(kind.verify(files, release) if part is None else kind.verify_part(files, release, part)),
        Check(
            "published.csv matches published.json",
            files.same("published.csv", published_csv(release.everything).encode()),
        ),
        Check(
            "the stated comparison of datasets matches the exact figures",
            pairs == promised.adjacency.to_dict(),
        ),
        Check(
            "the stated noise and promise match the data files",
            _as_read(index["description"], release.description.to_dict())
            and _as_read(stated | {"adjacency": promised.adjacency.to_dict()}, promised.to_dict()),
        ),
        Check(
            "the promise in words matches the promise in numbers",
            _in_words(str(index["promise"]), promised),
        ),
        Check(
            "release.json lists every file of the bundle and no others", _own_files(index, release)
        ),
        Check(
            "release.json states when the bundle was made and has no unexpected fields",
            _plain_index(index) and _one_line_each(release),
        ),
    ]
    documents = "the JSON documents contain no unexpected text"
    checks.append(Check(documents, _documents(folder, index, release)))
    if not (release.publishable and release.randomness in PUBLISHABLE):
        checks.append(Check(SYSTEM, False, release.randomness[:100]))
    progress("writing its report again")
    sound = all(check.holds or check.what == SYSTEM for check in checks)
    return [*checks, *_words(folder, index, release, sound)]


def _words(folder: Path, index: Mapping[str, Any], release: Any, sound: bool) -> list[Check]:
    """What README and report say; all of it is written anew where the numbers are right."""
    promise = str(index["promise"])
    checks = [
        Check(
            "README.txt and report.html state that promise",
            promise in read_text(folder / "README.txt")
            and states(release, promise, read_text(folder / "report.html")),
        )
    ]
    if sound and checks[0].holds:
        checks += nothing_else(folder, release, promise, str(index["created"]))
    return checks


def _as_read(told: Mapping[str, Any], read: Mapping[str, Any]) -> bool:
    """Whether what is written is what would be written of it now."""
    return bool(told == json.loads(json.dumps(read)))


def _in_words(told: str, promised: Guarantee) -> bool:
    """The paragraph, and nothing after it but what was spent, by this and by all releases."""
    paragraph, pairs = promised.explain(), promised.adjacency
    after = told[len(paragraph) :]
    if not told.startswith(paragraph) or not after:
        return told == paragraph
    account, stop, together = after.removeprefix(" Spent: ").partition(". ")
    if not is_account(account if stop else account.removesuffix("."), pairs.counted):
        return False
    once = promised.explain(account if stop else account.removesuffix("."))
    bounds = {f"{once} {guess_after_all(account, several)}" for several in (False, True)}
    return told == once or bool(together and pairs.guesser and told in bounds)


def _own_files(index: Mapping[str, Any], release: Any) -> bool:
    return set(index["files"]) == {*release.payload(), *COMMON}


def _plain_index(index: Mapping[str, Any]) -> bool:
    """The fields of release.json, each in its own form."""
    created = str(index.get("created"))
    try:
        moment = datetime.fromisoformat(created)
        right = (
            moment.tzinfo == UTC
            and moment.isoformat(timespec="seconds") == created
            and moment <= datetime.now(UTC) + timedelta(days=1)  # clocks differ
        )
    except ValueError:
        right = False
    return right and set(index) == FIELDS | ({"folders"} & set(index))


def _one_line_each(release: Any) -> bool:
    """Whether what a publisher named or assumed passes for no other part of README or report."""
    promised, figures = release.guarantee, release.everything.told
    texts = [release.name, *promised.assumptions, *promised.not_covered]
    texts += [text for figure in figures for text in (figure.label, figure.because)]
    return all(text.splitlines() in ([], [text]) for text in texts)


def _documents(folder: Path, index: Mapping[str, Any], release: Any) -> bool:
    """Not a key twice, not a space more than is written, no number in another form."""
    documents = {
        INDEX: index_of(release, str(index["promise"]), index["files"], index["created"]),
        "schema.json": release.schema.to_dict(),
        "published.json": release.everything.to_dict(),
    }
    return all(read_bytes(folder / name) == as_json(value) for name, value in documents.items())


def _manifest(index: Mapping[str, Any]) -> dict[str, str]:
    files = index.get("files")
    if not isinstance(files, dict) or any(
        not isinstance(name, str) or Path(name).name != name or name in ("..", ".")
        for name in files
    ):
        raise BundleError(
            "release.json lists files outside the bundle's folder.",
            remedy="Do not use this bundle; get it from its publisher.",
        )
    return {name: str(value) for name, value in files.items()}


# ---- README, citation and report, written again --------------------------------------------------


def nothing_else(folder: Path, release: Any, promise: str, created: str) -> list[Check]:
    """For each text of the bundle whether it is what would be written anew."""
    cited = citation(release, created)
    texts = {"README.txt": readme(release, promise), "CITATION.cff": cited}
    checks = [
        Check(f"{name} contains no unexpected text", read_text(folder / name) == again)
        for name, again in texts.items()
    ]
    return [*checks, _report_check(release, promise, read_text(folder / "report.html"))]


def _report_check(release: Any, promise: str, page: str) -> Check:
    """The report, and where it differs."""
    what = "report.html contains no unexpected text or pictures"
    try:
        again = report_of(release, promise)
    except (CongenialError, ArithmeticError, KeyError, TypeError, ValueError):
        return Check(what, False, "what it says it rests on makes no sense")
    different = differences(page, again)
    return Check(what, not different, f"it differs in: {', '.join(different)}" if different else "")


def report_of(release: Any, promise: str) -> str:
    """The report of a release of any kind."""
    return by_name(release.kind).report(release, promise)


def states(release: Any, promise: str, page: str) -> bool:
    """Whether a report has the promise, and the one about persons where that is another."""
    persons = further_promise_of(release)
    texts = [promise] if persons is None else [promise, persons.explain()]
    return all(stated(text) in page for text in texts)


def further_promise_of(release: Any) -> Guarantee | None:
    """What the report of a release says about persons besides its own promise."""
    return by_name(release.kind).further_promise(release)
