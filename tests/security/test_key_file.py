"""The key file is damaged or gone while the service runs: the known keys stay in use."""

import os
from pathlib import Path

import pytest

from app.crypto.keyring import Keyring
from tests.support.api import ApiClient

HALF_WRITTEN = ["", "{", '{"keys": [{"id": "abc"', '{"keys": []}', '{"keys": [{}]}', "[]", "null"]


@pytest.fixture
def app(make_app):
    """With keys in a file instead of the environment."""
    return make_app(secret_keys=())


@pytest.fixture
def file(rt):
    return rt.config.instance / "keys.json"


def all_is_well(client, user):
    """Whatever signs, verifies or encrypts works."""
    client.me().ok()
    client.refresh().ok()
    client.stranger().login(user).ok()
    client.me().ok()


def test_a_new_key_is_on_the_disk_with_its_name_before_it_is_used(rt, file, clock, monkeypatch):
    """What is encrypted with it a moment later would be lost with it in a power cut."""
    synced, sync = [], os.fsync

    def noted(descriptor):
        sync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        synced.append((path, file.read_text() if file.exists() else None))

    monkeypatch.setattr(os, "fsync", noted)
    before = file.read_text()
    Keyring(rt.config, clock).rotate()
    [(draft, then), (folder, now)] = synced
    assert (draft.parent, then) == (file.parent, before)
    assert (folder, now) == (file.parent, file.read_text())
    file.unlink()
    Keyring(rt.config, clock).create()
    assert synced[-1] == (file.parent, file.read_text())


def test_a_removed_key_file_is_not_missed(signed_in, user, file, clock):
    file.unlink()
    for _ in range(3):
        clock.advance(seconds=2)
        all_is_well(signed_in, user)
    assert not file.exists()


@pytest.mark.parametrize("text", HALF_WRITTEN, ids=ascii)
def test_a_half_written_key_file_is_not_taken_over(rt, signed_in, user, file, clock, text):
    known = rt.keyring.keys
    file.write_text(text)
    clock.advance(seconds=2)
    all_is_well(signed_in, user)
    assert rt.keyring.keys == known


def test_a_key_file_that_is_not_text_is_not_taken_over(signed_in, user, file, clock):
    file.write_bytes(b"\xff\xfe\x00")
    clock.advance(seconds=2)
    all_is_well(signed_in, user)


def test_a_token_of_an_unknown_key_is_refused_while_the_file_is_gone(
    make_app, signed_in, user, file, clock
):
    """It makes the service look for a newer key, in vain."""
    foreign = ApiClient(make_app(secret_keys=(("other", b"a secret this installation lacks."),)))
    foreign.login(user).ok()
    file.unlink()
    clock.advance(seconds=2)
    signed_in.bearer(foreign.access_token).me().fails(401, "auth.token_invalid")
    all_is_well(signed_in, user)


def test_a_key_file_that_comes_back_is_read_again(rt, signed_in, user, file, clock):
    other = Keyring(rt.config, clock)
    other.rotate()
    written = file.read_text()
    file.write_text(written[: len(written) // 2])
    clock.advance(seconds=2)
    all_is_well(signed_in, user)
    assert len(rt.keyring.keys) == 1
    file.write_text(written)
    clock.advance(seconds=2)
    all_is_well(signed_in, user)
    assert rt.keyring.keys == other.keys
    assert len(rt.keyring.keys) == 2
