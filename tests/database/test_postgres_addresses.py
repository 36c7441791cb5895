"""Finding PostgreSQL's addresses before libpq does, which waits for the DNS in C."""

import socket
from unittest.mock import Mock

import psycopg2
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from app.core.database import postgres_addresses
from app.core.database.postgres_addresses import with_addresses

AWAY = socket.gaierror(socket.EAI_AGAIN, "the DNS is away")


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(postgres_addresses, "_known", {})


def have(monkeypatch, *addresses):
    """Have every name stand for these; return what is looked up."""
    asked = []

    def look_up(host, port, **_):
        asked.append((host, port))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, port)) for found in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


def test_a_name_keeps_its_place_beside_all_its_addresses(monkeypatch):
    asked = have(monkeypatch, "192.0.2.1", "192.0.2.2", "192.0.2.1")
    assert with_addresses({"host": "db.example", "port": 6432, "user": "u"}) == {
        "host": "db.example,db.example",
        "hostaddr": "192.0.2.1,192.0.2.2",
        "port": 6432,
        "user": "u",
    }
    assert asked == [("db.example", 6432)]


@pytest.mark.parametrize(
    "parameters",
    [
        {"dbname": "files"},
        {"host": "/run/postgresql"},
        {"host": "@abstract"},
        {"host": "192.0.2.1"},
        {"host": "fe80::1%eth0"},
        {"host": "a.example,b.example"},
        {"host": "a.example", "port": "5432,5433"},
        {"host": "db.example", "hostaddr": "192.0.2.9"},
        {"hostaddr": "192.0.2.9"},
    ],
    ids=str,
)
def test_what_has_no_name_to_look_up_is_left_to_libpq(monkeypatch, parameters):
    asked = have(monkeypatch, "192.0.2.1")
    assert with_addresses(parameters) == parameters
    assert asked == []


def test_after_a_failover_the_address_is_another(monkeypatch):
    for address in ("192.0.2.1", "192.0.2.2"):
        have(monkeypatch, address)
        assert with_addresses({"host": "db.example"})["hostaddr"] == address


def test_while_the_dns_is_away_a_host_is_where_it_was(monkeypatch):
    have(monkeypatch, "192.0.2.1")
    found = with_addresses({"host": "db.example"})
    monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=AWAY))
    assert with_addresses({"host": "db.example"}) == found
    with pytest.raises(psycopg2.OperationalError, match=r"new\.example could not be found"):
        with_addresses({"host": "new.example"})


def test_libpq_is_told_the_addresses_found(monkeypatch):
    """It could not find this name by itself; nobody listens at the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    have(monkeypatch, "127.0.0.1")
    engine = create_engine(f"postgresql+psycopg2://files@db.invalid:{port}/files")
    postgres_addresses.install(engine)
    with pytest.raises(OperationalError, match=r'at "127\.0\.0\.1".*refused'):
        engine.connect()
