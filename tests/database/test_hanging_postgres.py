"""Waiting for a PostgreSQL that may hang, in a process of its own with gevent's loop."""

import subprocess
import sys

import pytest

from tests.support import servers

pytestmark = pytest.mark.both_databases

# Its times are shorter than the product's, so that the test is.
PROGRAM = """
import sys
from gevent import monkey
monkey.patch_all()
import gevent, psycopg2
from app.store import postgres

postgres.SILENCE_SECONDS = postgres.ANSWER_SECONDS = postgres.CONNECT_SECONDS = 0.6
postgres.wait_cooperatively()
connections = [psycopg2.connect(sys.argv[1]) for _ in range(2)]

def ask(connection, statement="SELECT 1"):
    try:
        cursor = connection.cursor()
        cursor.execute(statement)
        return cursor.fetchone()[0]
    except psycopg2.OperationalError as error:
        return f"{type(error).__name__} {connection.closed}"

def connect():
    try:
        return psycopg2.connect(sys.argv[1])
    except psycopg2.OperationalError as error:
        return type(error).__name__

def tell(what):
    print(what, flush=True)
    sys.stdin.readline()

tell(ask(connections[0], "SELECT 7 FROM pg_sleep(1.5)"))  # hangs from here on
waiting = [gevent.spawn(ask, connection) for connection in connections]
gevent.joinall(waiting)
tell([greenlet.value for greenlet in waiting] + [connect()])  # answers from here on
tell(ask(connect()))
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
        # Both waits were ended, their connections closed, and nobody could connect anew.
        assert told == "['NoAnswer 2', 'NoAnswer 2', 'NoAnswer']"
        go_on()
        assert next_line() == "1"
        go_on()
