"""Leaks for test_leaks.py to find; not part of the suite."""

import logging

from app.crypto import tokens
from tests.support.leaks import watch

log = logging.getLogger("app.planted")


def test_without_a_leak() -> None:
    tokens.random_token()
    log.info("nothing to hide")


def test_that_logs_a_token() -> None:
    log.debug("made %s", tokens.random_token())


def test_that_logs_a_password() -> None:
    watch.note_body({"password": "a good long password"})
    log.info("signed in", extra={"tried": "a good long password"})
