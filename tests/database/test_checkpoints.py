"""Checkpoints of SQLite's log are made beside the commits of a serving process."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.core.database import checkpoints
from app.core.database.checkpoints import Checkpoints
from app.core.database.database import Database
from app.core.database.prepared import Prepared
from app.users.models import User

PAGE_BYTES = 4096
USUAL_PAGES = 1000
RENAME = Prepared(
    sa.update(User).where(User.id == sa.bindparam("user_id")).values(username=sa.bindparam("name")),
    ("name", "user_id"),
)


pytestmark = pytest.mark.any_database  # SQLite; PostgreSQL has processes for this


@pytest.fixture
def file(rt):
    return Path(sa.make_url(rt.config.database_url).database)


@pytest.fixture
def serving(rt, user):
    """The database as a serving process has it, which begins to count its commits here.

    So the last commit of a test makes a checkpoint due: one that is made beside further commits may
    find the log in use, and is left to the next time.
    """
    stop = rt.database.start_checkpoints(rt.disk)
    rt.database.close()  # it is for connections made from now on
    yield rt.database
    stop()


def write_long_enough(database: Database, user_id: int) -> None:
    for number in range(checkpoints.COMMITS_PER_CHECKPOINT):
        assert database.change_together((RENAME, (f"renamed{number}", user_id))) == 1


def is_in_the_file_alone(file: Path, user_id: int, copy: Path) -> bool:
    """Tell whether the database file, without its log, knows of what was written."""
    copy.write_bytes(file.read_bytes())
    with closing(sqlite3.connect(copy)) as connection:
        found = connection.execute("SELECT username FROM users WHERE id = ?", (user_id,))
        names = [name for (name,) in found]
    return bool(names) and names[0].startswith("renamed")


def test_what_was_written_gets_into_the_file(serving, user, file, tmp_path, wait_for):
    write_long_enough(serving, user.id)
    wait_for(lambda: is_in_the_file_alone(file, user.id, tmp_path / "copy.db"))


@pytest.mark.usefixtures("serving")
def test_commits_make_no_checkpoints_themselves(rt, file):
    pages = 300
    for _ in range(5):
        with rt.transaction() as session:
            session.execute(sa.text("CREATE TABLE IF NOT EXISTS large (content BLOB)"))
            session.execute(sa.text(f"INSERT INTO large VALUES (zeroblob({pages * PAGE_BYTES}))"))
    log = file.with_name(f"{file.name}-wal")
    assert log.stat().st_size > 5 * pages * PAGE_BYTES > USUAL_PAGES * PAGE_BYTES
    with rt.transaction() as session:
        session.execute(sa.text("DROP TABLE large"))


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk I/O error"), KeyError("odd")])
def test_a_checkpoint_that_fails_is_not_the_last(serving, user, monkeypatch, wait_for, error):
    make, made = Checkpoints._make, []

    def failing_once(self):
        made.append(self)
        if len(made) == 1:
            raise error
        return make(self)

    monkeypatch.setattr(Checkpoints, "_make", failing_once)
    for number in (1, 2):
        write_long_enough(serving, user.id)
        wait_for(lambda number=number: len(made) >= number)
