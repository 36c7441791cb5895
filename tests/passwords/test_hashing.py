"""The hash of a password, which two libraries compute."""

import logging

import pytest
from passlib.hash import argon2

from app.core.config import Argon2Cost
from app.core.passwords import Passwords, SodiumArgon2

PASSWORDS = ["correct horse", "äöü\u00a0\u1f600 " * 20, "with a \0 inside"]


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("cost", [(8, 1), (64, 3), (19456, 2)])
def test_libsodium_and_argon2_cffi_agree_both_ways(password, cost):
    memory_cost, rounds = cost
    options = {"type": "ID", "memory_cost": memory_cost, "rounds": rounds, "parallelism": 1}
    sodium, cffi = SodiumArgon2.using(**options), argon2.using(**options)
    made = sodium.hash(password)
    assert made.startswith(f"$argon2id$v=19$m={memory_cost},t={rounds},p=1$")
    assert cffi.verify(password, made)
    assert not cffi.verify(password + "x", made)
    made = cffi.hash(password)
    assert sodium.verify(password, made)
    assert not sodium.verify(password + "x", made)


@pytest.mark.parametrize(
    "options",
    [{"parallelism": 2}, {"type": "I"}, {"salt_size": 8}, {"digest_size": 24}, {"rounds": 1}],
)
def test_a_hash_with_unusual_parameters_is_verified(options):
    cost = {"type": "ID", "memory_cost": 64, "rounds": 2, "parallelism": 1}
    made = argon2.using(**(cost | options)).hash("correct horse")
    passwords = Passwords(Argon2Cost(64, 2, 1), threads=1)
    verdict = passwords.check("correct horse", made)
    assert verdict.matches
    assert (verdict.new_hash is None) == ("salt_size" in options)
    assert not passwords.check("wrong horse", made).matches


def test_more_than_one_lane_is_possible():
    passwords = Passwords(Argon2Cost(64, 2, 2), threads=1)
    made = passwords.hash("correct horse")
    assert made.startswith("$argon2id$v=19$m=64,t=2,p=2$")
    assert passwords.check("correct horse", made).new_hash is None


def test_a_damaged_hash_matches_nothing(caplog):
    caplog.set_level(logging.ERROR)
    passwords = Passwords(Argon2Cost(8, 1, 1), threads=1)
    for damaged in (
        "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$",
        "$argon2id$v=19$m=4,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA",
        "$argon2id$v=19$m=8,t=0,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA",
        "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdA",
        "$argon2id$v=19$m=9999999999,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdA",
    ):
        caplog.clear()
        assert not passwords.check("correct horse", damaged).matches, damaged
        assert "a stored password hash cannot be read" in caplog.text, damaged
