"""What is measured: each scenario's name, what it does, and how."""

from dataclasses import dataclass

from bench.lab import Measure
from bench.scenarios import (
    administration,
    avatars,
    growth,
    imports,
    logins,
    nginx,
    pages,
    requests,
    streams,
    year,
)


@dataclass(frozen=True)
class Scenario:
    """Something to measure; `is_large` ones run only with --all or by name."""

    name: str
    summary: str
    measure: Measure
    databases: tuple[str, ...] = ("sqlite", "postgres")
    is_large: bool = False


SCENARIOS = (
    Scenario("me", "who am I, beside the peers", requests.me),
    Scenario(
        "me-by-token", "who am I by access token, beside that by session", requests.me_by_token
    ),
    Scenario("sessions", "the list of a user's five sessions, beside the peers", requests.sessions),
    Scenario(
        "refresh", "each client rotates a session of its own, beside the peers", requests.refresh
    ),
    Scenario("login", "64 clients, beside a pure Argon2id loop and the peers", logins.login),
    Scenario("login-notice", "logins by new browsers, with and without a mail", logins.notice),
    Scenario("me-during-logins", "who am I while 64 clients log in", logins.me_during_logins),
    Scenario("memory", "a worker's memory: idle, after 2,000 and 4,000 logins", logins.memory),
    Scenario(
        "refusals", "wrong passwords, by the kind of hash that accounts have", logins.refusals
    ),
    Scenario("avatar", "an upload of 1024 x 1024, beside bare Pillow", avatars.upload),
    Scenario(
        "pages",
        "their rates beside a bare route's; what Chromium loads, and how soon it shows that",
        pages.pages,
        databases=("sqlite",),
    ),
    Scenario("nginx", "who am I and /login, direct and behind a plain nginx", nginx.nginx),
    Scenario("streams", "10,000 event streams on two workers", streams.streams, is_large=True),
    Scenario(
        "growth",
        "me, login without its hash and refresh with 1,000 and with 1,000,000 accounts",
        growth.growth,
        databases=("postgres",),
        is_large=True,
    ),
    Scenario(
        "imports",
        "10,000 accounts of each format of password hash, and their first logins",
        imports.imports,
        databases=("sqlite",),
        is_large=True,
    ),
    Scenario(
        "administration",
        "lists of 1,000,000 accounts and 5,000,000 entries of the audit log; a clean-up there",
        administration.administration,
        databases=("postgres",),
        is_large=True,
    ),
    Scenario(
        "year",
        "what an account's acts write, and what a year of 100,000 and of 10,000,000 comes to",
        year.year,
        databases=("postgres",),
        is_large=True,
    ),
)
