"""Reads that meet share a statement, and nobody gets another's rows or another's failure."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.core.lookups import GatheredReads
from app.core.tokens import random_uuid
from app.sessions import access_token, queries
from tests.support.api import ApiClient
from tests.support.factories import make_user


class Store:
    """Rows by key; its first read waits until others have gathered."""

    def __init__(self):
        self.reads = []
        self.others_wait = threading.Event()
        self.is_lost = False

    def one(self, key):
        self.reads.append([key])
        if len(self.reads) == 1:
            assert self.others_wait.wait(10)
        return [(key, "row")] if key < 100 else []

    def many(self, keys):
        self.reads.append(list(keys))
        if self.is_lost:
            raise ConnectionError
        return {key: [(key, "row")] for key in keys if key < 100}


def read_at_once(store, keys):
    """Return what each key found, and read by the statements of `store.reads`."""
    reads = GatheredReads(store.one, store.many)
    with ThreadPoolExecutor(len(keys)) as pool:
        first = pool.submit(reads.rows, keys[0])
        others = [pool.submit(reads.rows, key) for key in keys[1:]]
        while len(reads._waiting) < len(others):
            pass
        store.others_wait.set()
        return [first, *others]


def test_what_comes_during_a_read_is_read_by_one_statement():
    store = Store()
    found = read_at_once(store, [1, 2, 3, 200, 2])
    assert [call.result(10) for call in found] == [
        [(1, "row")],
        [(2, "row")],
        [(3, "row")],
        [],
        [(2, "row")],
    ]
    assert len(store.reads) == 2
    assert sorted(store.reads[1]) == [2, 2, 3, 200]


def test_one_that_fails_for_all_is_repeated_by_each_for_itself():
    store = Store()
    store.is_lost = True
    found = read_at_once(store, [1, 2, 3, 4])
    errors = [call.exception(10) for call in found]
    assert errors[0] is None
    assert [type(error) for error in errors if error] == [ConnectionError]  # who led
    rows = [call.result() for call in found if call.exception() is None]
    assert len(rows) == 3
    assert all(row for row in rows)


def test_a_failure_leaves_the_next_caller_unharmed():
    store = Store()
    store.is_lost = True
    store.others_wait.set()
    reads = GatheredReads(store.one, store.many)
    assert reads.rows(1) == [(1, "row")]
    assert reads.rows(200) == []


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
