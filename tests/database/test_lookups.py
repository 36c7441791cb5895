"""Reads that meet share a statement, and nobody gets another's rows or another's failure."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from app.core.database.lookups import BatchedReads, Lookup
from app.core.tokens import random_uuid
from app.sessions import access_token, queries
from app.sessions.models import LoginSession
from tests.support.api import ApiClient
from tests.support.factories import make_user
from tests.support.live import eventually


class Store:
    """Rows by key; its first read goes on when it is told to."""

    def __init__(self, *, first_fails=False, many_fails=False):
        self.reads = []
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()
        self._first_fails = first_fails
        self._many_fails = many_fails

    def one(self, key):
        self.reads.append([key])
        if len(self.reads) == 1:
            self.has_begun.set()
            assert self.may_go_on.wait(10)
            if self._first_fails:
                raise ConnectionError
        return [(key, "row")] if key < 100 else []

    def many(self, keys):
        self.reads.append(list(keys))
        if self._many_fails:
            raise ConnectionError
        return {key: [(key, "row")] for key in keys if key < 100}


def read_at_once(store, keys):
    """Have the first key read, and the others wait meanwhile; return how each call ended."""
    reads = BatchedReads(store.one, store.many)
    with ThreadPoolExecutor(len(keys)) as pool:
        calls = [pool.submit(reads.rows, keys[0])]
        assert store.has_begun.wait(10)
        calls += [pool.submit(reads.rows, key) for key in keys[1:]]
        eventually(lambda: len(reads._waiting) == len(keys) - 1, "the others to wait")
        store.may_go_on.set()
    return reads, calls


def test_what_comes_during_a_read_is_read_by_one_statement():
    store = Store()
    _, calls = read_at_once(store, [1, 2, 3, 200, 2])
    assert [call.result() for call in calls] == [
        [(1, "row")],
        [(2, "row")],
        [(3, "row")],
        [],
        [(2, "row")],
    ]
    assert len(store.reads) == 2
    assert sorted(store.reads[1]) == [2, 2, 3, 200]


def test_one_that_fails_for_all_is_repeated_by_each_for_itself():
    _, calls = read_at_once(Store(many_fails=True), [1, 2, 3, 4])
    failed = [call for call in calls if call.exception()]
    assert [type(call.exception()) for call in failed] == [ConnectionError]  # who led
    assert [call.result() for call in calls if call not in failed] == [
        [(key, "row")] for key, call in zip([1, 2, 3, 4], calls, strict=True) if call not in failed
    ]


def test_the_first_one_s_failure_is_its_own():
    reads, calls = read_at_once(Store(first_fails=True), [1, 2, 3])
    assert isinstance(calls[0].exception(), ConnectionError)
    assert [call.result() for call in calls[1:]] == [[(2, "row")], [(3, "row")]]
    assert reads.rows(4) == [(4, "row")]


def test_one_that_gives_up_waiting_holds_nobody_up():
    store = Store()
    reads = BatchedReads(store.one, store.many)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(reads.rows, 1)
        assert store.has_begun.wait(10)

        class GivesUp(threading.Event):
            def wait(self, timeout=None):
                super().wait(0)
                store.may_go_on.set()
                first.result(10)
                raise TimeoutError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("app.core.database.lookups.threading.Event", GivesUp)
            with pytest.raises(TimeoutError):
                reads.rows(2)
        assert pool.submit(reads.rows, 3).result(10) == [(3, "row")]


@pytest.mark.postgres
def test_parallel_access_checks_each_find_their_own_session(app, rt):
    users = [make_user(rt) for _ in range(8)]
    sessions = {}
    for user in users:
        client = ApiClient(app)
        client.login(user).ok()
        token = client.cookies["service_access"]
        claims = access_token.read(rt.access_tokens, token, rt.clock.now())
        sessions[claims.session_id] = user.id
    unknown = [random_uuid() for _ in range(4)]

    def check(session_id):
        access = queries.find_access(rt.database, session_id)
        return access and access.account.id

    wanted = [*sessions, *unknown] * 20
    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(check, wanted))
    assert found == [sessions.get(session_id) for session_id in wanted]


@pytest.mark.postgres
def test_keys_with_too_many_rows_are_not_read_together(app, rt):
    users = [make_user(rt) for _ in range(3)]
    for user, count in zip(users, (7, 1, 0), strict=True):
        for _ in range(count):
            ApiClient(app).login(user).ok()
    lookup = Lookup(sa.select(LoginSession.user_id), LoginSession.user_id, most=2)
    many, one, none = [user.id for user in users]
    found = [rt.database.lookup_all(lookup, key) for key in (many, one, none)]
    assert found == [[(many,)] * 2, [(one,)], []]
    read_many = rt.database._batched_reads(lookup)._read_many
    assert read_many([one, none, one]) == {one: [(one,)]}
    assert read_many([many, one]) is None
