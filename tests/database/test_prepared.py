"""Prepared statements that are run together: all of them or none, whatever their database."""

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from app.core.database.locks import NamedLock
from app.core.database.prepared import Prepared, run_within
from app.core.database.runner import Compiled
from app.core.errors import DatabaseUnavailable
from tests.support.factories import count
from tests.support.prepared import ADD, READ, RENAME, names

NOWHERE = Prepared(sa.select(sa.table("nowhere", sa.column("name")).c.name), ())


def test_the_last_step_sees_what_the_first_did(rt):
    rows = rt.database.change_then_read(ADD.step(new="new1"), READ.step(like="new%"))
    assert rows == [("new1",)]
    assert names(rt) == ["new1"]


def test_what_the_last_step_changed_is_counted(rt):
    steps = [ADD.step(new="new1"), RENAME.step(old="new1", new="new2")]
    assert rt.database.change_together(*steps) == 1
    assert rt.database.change_together(RENAME.step(old="new1", new="new3")) == 0
    assert names(rt) == ["new2"]


@pytest.mark.parametrize("run", ["change_together", "change_then_read"])
def test_one_that_fails_takes_the_others_with_it(rt, run):
    before = count(rt, NamedLock)
    taken = ADD.step(new="setup")
    with pytest.raises(IntegrityError):
        getattr(rt.database, run)(ADD.step(new="new1"), taken)
    with pytest.raises((DatabaseUnavailable, sa.exc.ProgrammingError)):
        getattr(rt.database, run)(ADD.step(new="new1"), NOWHERE.step())
    assert count(rt, NamedLock) == before
    # The connection is as good as new.
    assert rt.database.change_together(ADD.step(new="new1")) == 1


def test_the_same_steps_run_within_a_larger_transaction(rt):
    with rt.transaction() as session:
        run_within(session, READ.step(like="new%"), ADD.step(new="new1"))
        assert run_within(session, RENAME.step(old="new1", new="new2")) == 1
        assert run_within(session, RENAME.step(old="new1", new="new2")) == 0
        session.rollback()
    assert names(rt) == []


def test_a_step_takes_each_of_its_values_by_name_and_no_other():
    assert RENAME.step(new="b", old="a") == (RENAME, ("a", "b"))
    for others in ({"new": "b"}, {"new": "b", "other": "c"}):
        with pytest.raises(KeyError):
            RENAME.step(**others)
    with pytest.raises(TypeError, match="other"):
        RENAME.step(new="b", old="a", other="c")


@pytest.mark.postgres
def test_a_name_stands_for_one_statement_whatever_the_version(rt):
    """Behind a pooler a connection may know the statements of another one."""
    dialect = rt.database.engine.dialect
    compiled = [Compiled(prepared, dialect) for prepared in (ADD, READ, RENAME)]
    assert len({one.name for one in compiled}) == 3
    again = Prepared(READ.statement, ("like",))
    assert Compiled(again, dialect).name == compiled[1].name
