"""Finding PostgreSQL's addresses before libpq does, which waits for the DNS in C."""

import socket

import psycopg2
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from app.core.database import postgres_addresses

FOUND = [("192.0.2.1", 5432), ("192.0.2.2", 5432), ("192.0.2.1", 5432)]


@pytest.fixture
def names(monkeypatch):
    """Every name that is looked up; each has the same addresses."""
    asked = []

    def look_up(host, port, **_):
        asked.append((host, port))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in FOUND]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


def test_a_name_keeps_its_place_beside_all_its_addresses(names):
    found = postgres_addresses.with_addresses({"host": "db.example", "port": 6432, "user": "u"})
    assert found == {
        "host": "db.example,db.example",
        "hostaddr": "192.0.2.1,192.0.2.2",
        "port": 6432,
        "user": "u",
    }
    assert names == [("db.example", 6432)]


@pytest.mark.parametrize(
    "parameters",
    [
        {"dbname": "files"},
        {"host": "/run/postgresql"},
        {"host": "@abstract"},
        {"host": "a.example,b.example"},
        {"host": "db.example", "hostaddr": "192.0.2.9"},
    ],
    ids=str,
)
def test_what_has_no_name_to_look_up_is_left_to_libpq(names, parameters):
    assert postgres_addresses.with_addresses(parameters) == parameters
    assert names == []


def test_after_a_failover_the_addresses_are_others(names):
    old = {"host": "db.example", "hostaddr": "192.0.2.7", "port": "5432"}
    new = {"host": "db.example,db.example", "hostaddr": "192.0.2.1,192.0.2.2", "port": "5432"}
    assert postgres_addresses.renewed(old) == new
    assert postgres_addresses.renewed(new) == new
    assert postgres_addresses.renewed({"host": "/run/postgresql"}) == {"host": "/run/postgresql"}


def test_a_name_that_cannot_be_found_is_a_database_that_cannot_be_reached(monkeypatch):
    def fail(*_, **__):
        raise socket.gaierror(socket.EAI_AGAIN, "the DNS is away")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    known = {"host": "db.example", "hostaddr": "192.0.2.7"}
    with pytest.raises(psycopg2.OperationalError, match=r"db\.example could not be found"):
        postgres_addresses.with_addresses({"host": "db.example"})
    assert postgres_addresses.renewed(known) == known


def test_libpq_is_told_the_addresses_found(monkeypatch):
    """It could not find this name by itself; nobody listens at the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [place])
    engine = create_engine(f"postgresql+psycopg2://files@db.invalid:{port}/files")
    postgres_addresses.install(engine)
    with pytest.raises(OperationalError, match=r'at "127\.0\.0\.1".*refused'):
        engine.connect()
