"""The hash of a password, which two libraries compute."""

import logging

import pytest
from passlib.hash import argon2

from app.core.config import Argon2Cost
from app.crypto import passwords as hashing
from app.crypto.foreign_hashes import sample_of
from app.crypto.passwords import Cost, Passwords, PasswordVerdict, SodiumArgon2

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


# What checking a hash of each kind costs, and the hash: of several lanes, other threads compute.
KINDS = {
    "none": (None, Cost(0.02, 0.02, 0.02)),
    "ours": ("$argon2id$v=19$m=8,t=1,p=1$" + "A" * 22 + "$" + "A" * 43, Cost(0.02, 0.02, 0.02)),
    "bcrypt": ("$2b$12$" + "." * 53, Cost(0.24, 0.24, 0.24)),
    "lanes": ("$argon2id$v=19$m=64,t=3,p=4$" + "A" * 22 + "$" + "A" * 43, Cost(0.0, 0.1, 0.3)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_takes_as_long_whatever_computes(monkeypatch, kind):
    """By clocks that advance as a check of this kind makes them, and with each round of filling."""
    passwords = Passwords(Argon2Cost(8, 1, 1), threads=1)
    samples = {sample_of(hashed): cost for hashed, cost in KINDS.values() if hashed}
    passwords._costs = samples | {passwords.own_sample: KINDS["ours"][1]}
    clocks = [0.0, 0.0, 0.0]

    def advance(cost):
        clocks[:] = [clock + spent for clock, spent in zip(clocks, cost, strict=True)]

    def refused(*_):
        advance(KINDS[kind][1])
        return PasswordVerdict(matches=False)

    monkeypatch.setattr(Cost, "now", classmethod(lambda _: Cost(*clocks)))
    monkeypatch.setattr(passwords, "_check", refused)
    monkeypatch.setattr(hashing, "pbkdf2_hmac", lambda *_: advance(Cost(0.001, 0.001, 0.001)))
    assert not passwords.check("wrong", KINDS[kind][0], samples).matches
    assert clocks[1] == pytest.approx(0.24, abs=0.003)
