"""A PostgreSQL server of a test's own: made, started, stopped and removed again, as an unprivileged user."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

PASSWORD = "not-for-anybodys-eyes"


def programs() -> Path | None:
    """The folder of initdb and postgres: where the path leads, or where Debian puts them."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


@contextlib.contextmanager
def server() -> Iterator[tuple[str, int]]:
    """The server's address, "grader:PASSWORD@127.0.0.1:PORT", and its process id.  It listens on loopback only.

    Without PostgreSQL on the machine the test is skipped, and says what to install.
    """
    bin_folder = programs()
    if bin_folder is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path is short
    try:
        with _running(bin_folder, folder) as found:
            yield found
    finally:
        shutil.rmtree(folder)


def url(address: str, name: str = "postgres") -> str:
    return f"postgresql+psycopg://{address}/{name}"


def empty(address: str) -> str:
    """The URL of the server's one database, with nothing in it any more."""
    engine = create_engine(url(address))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return url(address)


@contextlib.contextmanager
def _running(bin_folder: Path, folder: Path) -> Iterator[tuple[str, int]]:
    user = _unprivileged()
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    (folder / "password").write_text(PASSWORD, encoding="utf-8")
    (folder / "password").chmod(0o644)
    data = folder / "data"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"grader:{PASSWORD}@127.0.0.1:{port}"
    with open(folder / "log", "wb") as log:
        how: dict[str, Any] = {
            "cwd": folder,
            "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            "stdin": subprocess.DEVNULL,
            "stdout": log,
            "stderr": log,
        }
        if user is not None:
            how |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        made = subprocess.run(
            [
                *(bin_folder / "initdb", "-D", data, "-E", "UTF8", "--no-sync"),
                *("-U", "grader", "-A", "scram-sha-256", "--pwfile", folder / "password"),
            ],
            timeout=120,
            **how,
        )
        assert made.returncode == 0, (folder / "log").read_text()
        settings = ["listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={folder}", "fsync=off"]
        process = subprocess.Popen(
            [bin_folder / "postgres", "-D", data, *(word for setting in settings for word in ("-c", setting))], **how
        )
    try:
        _wait(address, process, folder / "log")
        yield address, process.pid
    finally:
        process.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    engine = create_engine(url(address))
    deadline = time.monotonic() + 60
    while True:
        try:
            with engine.connect():
                break
        except OperationalError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
    engine.dispose()


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom the server runs as where we are root, which PostgreSQL refuses to be; None for ourselves."""
    if os.getuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")
