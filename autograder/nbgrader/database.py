"""nbgrader's gradebook as a database: opened safely, by any URL, with errors that say what to do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alembic.script import ScriptDirectory
from nbgrader.api import Base
from nbgrader.dbutil import ALEMBIC_DIR
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError

from autograder.render.words import one_line
from autograder.submission import UsageError

#: How long to wait, in seconds, for a server, and for what another program has locked.
CONNECT_SECONDS, LOCK_SECONDS = 15, 30
#: Any number that no other program is likely to lock (PostgreSQL's advisory locks).
_MAKING_TABLES = 0x6265_7274_6772
_TABLES = ("student", "assignment", "grade", "submitted_assignment")


@contextlib.contextmanager
def opened(url: str, *, writes: bool) -> Iterator[Engine]:
    """The gradebook at a URL.

    writes: its tables are made if there are none, and a transaction of SQLite locks out other writers from its start.
    Raises UsageError, here and for whatever the database says within the block.
    """
    place, shown = _parsed(url)
    if not writes and place.get_backend_name() == "sqlite" and _is_missing(place):
        raise UsageError(f"--db {shown}: there is no gradebook there")
    try:
        engine = _engine(place, writes)
    except NoSuchModuleError:
        raise UsageError(f"--db {shown}: SQLAlchemy knows no database of that kind") from None
    except ImportError as error:
        raise UsageError(f"--db {shown}: {_driver(place, error)}") from None
    try:
        with engine.begin() as connection:
            _check(connection, shown, make=writes)
        yield engine
    except SQLAlchemyError as error:
        raise UsageError(f"--db {shown}: {explained(error)}") from error
    finally:
        engine.dispose()


def explained(error: SQLAlchemyError) -> str:
    """What went wrong, and what to do, in one line without the statement: that holds students' data."""
    said = one_line(str(getattr(error, "orig", None) or error).partition("\n")[0])
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    if "database is locked" in said or state == "55P03":
        return (
            "another program holds the gradebook locked. Let nbgrader or formgrader finish, and run the same command "
            "again: what is written stays, and is not written twice"
        )
    if "file is not a database" in said:
        return "the file is no SQLite database"
    if "readonly" in said or state == "42501":
        return f"it may not be written ({said})"
    if "unable to open database file" in said:
        return "the file cannot be opened: does its folder exist, and may you write there?"
    if isinstance(error, OperationalError) and state is None:  # before or without an answer of the server
        return f"it cannot be reached ({said}). Does the server run, and are host, port, name and password right?"
    return f"the database refused ({said})"


def _parsed(url: str) -> tuple[URL, str]:
    """The URL, and how to show it: without a password."""
    try:
        place = make_url(url)
    except (ArgumentError, ValueError):
        raise UsageError(
            "--db takes the URL of a database, such as sqlite:///gradebook.db or postgresql+psycopg://USER@HOST/NAME"
        ) from None
    return place, one_line(place.render_as_string(hide_password=True))


def _is_missing(place: URL) -> bool:
    return place.database not in (None, "", ":memory:") and not Path(str(place.database)).is_file()


def _driver(place: URL, error: ImportError) -> str:
    if place.get_backend_name() == "postgresql":
        return (
            f"PostgreSQL needs psycopg and libpq ({one_line(str(error))}): "
            "pip install -c constraints.txt -e '.[postgres]', and libpq5 from your system"
        )
    return f"its driver is not installed ({one_line(str(error))})"


def _engine(place: URL, writes: bool) -> Engine:
    if place.get_backend_name() == "sqlite":
        engine = create_engine(place, connect_args={"timeout": LOCK_SECONDS})

        # Python's sqlite3 begins transactions late, and tables outside of any; here SQLite is told when.
        @event.listens_for(engine, "connect")
        def _(connection: Any, _record: Any) -> None:
            connection.isolation_level = None

        @event.listens_for(engine, "begin")
        def _(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return engine
    if place.get_backend_name() == "postgresql" and "connect_timeout" not in place.query:
        place = place.update_query_dict({"connect_timeout": str(CONNECT_SECONDS)})
    engine = create_engine(place)
    if place.get_backend_name() == "postgresql":

        @event.listens_for(engine, "begin")
        def _(connection: Connection) -> None:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(LOCK_SECONDS * 1000)}")
            if not writes:
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

    return engine


def _check(connection: Connection, shown: str, make: bool) -> None:
    """Make the tables where there are none; refuse what is not a gradebook of this nbgrader.  Raises UsageError."""
    if make and connection.dialect.name == "postgresql":  # two commands at once: the second finds what the first made
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MAKING_TABLES})")
    head = ScriptDirectory(ALEMBIC_DIR).get_current_head()
    tables = set(inspect(connection).get_table_names())
    if not tables:
        if not make:
            raise UsageError(f"--db {shown}: the database is empty: there is no gradebook in it")
        Base.metadata.create_all(bind=connection)
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("INSERT INTO alembic_version (version_num) VALUES (:head)"), {"head": head})
        return
    if not tables.issuperset(_TABLES):
        raise UsageError(f"--db {shown}: this database holds other tables, and no gradebook of nbgrader")
    versions: list[str] = []
    if "alembic_version" in tables:
        versions = [str(row[0]) for row in connection.execute(text("SELECT version_num FROM alembic_version"))]
    if versions != [head]:
        found = one_line(", ".join(versions)) or "unknown"
        raise UsageError(
            f"--db {shown}: this gradebook was made by another version of nbgrader (its schema is {found}, that of the "
            f"nbgrader installed here {head}). Keep a copy of it, then run `nbgrader db upgrade`"
        )
    if missing := set(Base.metadata.tables) - tables:
        raise UsageError(f"--db {shown}: this gradebook lacks the tables {', '.join(sorted(missing))}")
