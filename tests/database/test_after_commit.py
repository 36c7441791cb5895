"""What waits for a commit waits for that of the whole transaction."""

from contextlib import suppress

import pytest
import sqlalchemy as sa

from app.mail import service as mail
from app.mail.templates import Template
from app.store.db import after_commit
from app.users import service as users
from app.users.models import User

pytestmark = pytest.mark.both_databases


@pytest.fixture
def done():
    return []


def test_it_is_done_once_after_the_commit(rt, user, done):
    with rt.transaction() as session:
        session.execute(sa.update(User).values(storage_quota=5))

        def look():
            with rt.reading() as connection:
                done.append(connection.scalar(sa.select(sa.func.min(User.storage_quota))))

        after_commit(session, look)
        session.flush()
        assert done == []
    assert done == [5]


def test_the_release_of_a_savepoint_is_no_commit(rt, done):
    with rt.transaction() as session:
        after_commit(session, lambda: done.append("before"))
        with session.begin_nested():
            after_commit(session, lambda: done.append("within"))
            with session.begin_nested():
                session.execute(sa.select(1))
        assert done == []
    assert done == ["before", "within"]


def test_what_is_undone_is_not_told(rt, done):
    with suppress(ZeroDivisionError), rt.transaction() as session:
        with session.begin_nested():
            after_commit(session, lambda: done.append("told"))
        raise ZeroDivisionError
    assert done == []


def test_mails_and_ended_sessions_wait_for_it(rt, done, monkeypatch):
    monkeypatch.setattr(rt.redis.fail_fast.client, "publish", lambda *told: done.append(told))
    rt.mailer.due.clear()
    with rt.transaction() as session:
        users.publish_ended_access(rt, session, 7)
        mail.queue(rt, session, Template.PASSWORD_RESET_NOTICE, "a@example.com", username="a")
        with session.begin_nested():
            session.execute(sa.select(1))
        assert (done, rt.mailer.due.is_set()) == ([], False)
    assert (done, rt.mailer.due.is_set()) == ([("gatehouse:sessions", "7")], True)
