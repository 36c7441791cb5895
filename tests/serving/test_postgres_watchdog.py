"""Waiting for a PostgreSQL that may hang, in a process of its own with gevent's loop."""

import subprocess
import sys
from unittest.mock import Mock

import pytest

from app.core.database import postgres_watchdog
from tests.support import servers

# Its times are shorter than the product's, so that the test is.
PROGRAM = """
import sys
from gevent import monkey
monkey.patch_all()
import gevent, psycopg2
from app.core.database import postgres_watchdog
from app.core.clock import SystemClock

postgres_watchdog.SILENCE_SECONDS = postgres_watchdog.ANSWER_SECONDS = 0.6
postgres_watchdog.LOOK_SECONDS = 0.1
watchdog = postgres_watchdog.PostgresWatchdog()
watchdog.install()
watchdog.watch(SystemClock(), psycopg2.extensions.parse_dsn(sys.argv[1]))
connections = [psycopg2.connect(sys.argv[1]) for _ in range(3)]

def ask(connection, statement="SELECT 1"):
    try:
        cursor = connection.cursor()
        cursor.execute(statement)
        return cursor.fetchone()[0]
    except psycopg2.OperationalError as error:
        return type(error).__name__

def tell(what):
    print(what, flush=True)
    sys.stdin.readline()

tell(ask(connections[0], "SELECT 7 FROM pg_sleep(1.5)"))  # hangs from here on
waiting = [gevent.spawn(ask, connection) for connection in connections[:2]]
gevent.joinall(waiting)
tell([greenlet.value for greenlet in waiting] + [ask(connections[2])])  # answers from here on
for _ in range(300):
    gevent.sleep(0.05)
    try:
        fresh = psycopg2.connect(sys.argv[1])
    except postgres_watchdog.PostgresHangs:
        continue
    break
tell(ask(fresh))
"""


@pytest.fixture
def postgres():
    with servers.short_folder() as folder, servers.PrivatePostgres(folder) as server:
        yield server


def test_a_slow_statement_is_waited_for_and_a_hanging_server_is_not(postgres):
    url = postgres.cluster.url("postgres").replace("+psycopg2", "")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url],
        cwd=servers.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:

        def next_line():
            return program.stdout.readline().strip()

        def go_on():
            program.stdin.write("\n")
            program.stdin.flush()

        assert next_line() == "7"
        postgres.hang()
        go_on()
        try:
            told = next_line()
        finally:
            postgres.resume()
        # Two waits were ended, and nobody began a third.
        assert told == "['OperationalError', 'OperationalError', 'PostgresHangs']"
        go_on()
        assert next_line() == "1"
        go_on()


@pytest.mark.parametrize(("answers", "cut"), [([True], 0), ([False, True], 0), ([False] * 2, 1)])
def test_one_answer_that_is_late_cuts_nobody_off(monkeypatch, clock, answers, cut):
    """The machine may have stood still just then."""
    watchdog, ended, heard = postgres_watchdog.PostgresWatchdog(), [], iter([*answers, True])
    monkeypatch.setattr(postgres_watchdog, "_answers", lambda parameters: next(heard))
    monkeypatch.setattr(postgres_watchdog, "_cut", ended.append)
    watchdog._since[Mock()] = clock.monotonic() - 10
    watchdog._look(clock)
    assert len(ended) == cut
