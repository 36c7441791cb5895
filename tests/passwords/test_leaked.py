"""Passwords that are in a list of leaked ones."""

import hashlib
import logging

import pytest

from app.crypto.leaked_passwords import LeakedPasswords
from tests.support.factories import configure

LEAKED = "correct horse battery"
REFUSED = "known from leaks"


def digest(password):
    return hashlib.sha1(password.encode()).hexdigest().upper()


def as_file(path, hashes, newline="\n"):
    path.write_bytes("".join(f"{each}:7{newline}" for each in sorted(hashes)).encode())
    return path


def as_folder(path, hashes, ending=".txt"):
    path.mkdir()
    for each in hashes:
        with (path / f"{each[:5]}{ending}").open("a") as file:
            file.write(f"{each[5:]}:7\r\n")
    return path


@pytest.fixture
def samples():
    return [f"password number {number}" for number in range(1_000)]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_sorted_file_has_what_is_in_it_and_nothing_else(tmp_path, samples, newline):
    listed, others = samples[::2], samples[1::2]
    leaked = LeakedPasswords(as_file(tmp_path / "list", map(digest, listed), newline))
    assert all(leaked.has(each) for each in listed)
    assert not any(leaked.has(each) for each in others)


@pytest.mark.parametrize("ending", ["", ".txt"])
def test_a_folder_of_ranges_has_the_same(tmp_path, samples, ending):
    path = as_folder(tmp_path / "ranges", map(digest, samples), ending)
    leaked = LeakedPasswords(path)
    assert all(leaked.has(each) for each in samples)
    name = digest("another")
    with (path / f"{name[:5]}{ending}").open("a") as file:
        file.write(f"{name[5:]}:0\n{'0' * 35}:9\n")  # a padded answer counts it as never seen
    assert not leaked.has("another")


def test_a_list_may_change_while_it_is_in_use(tmp_path, samples):
    path = as_file(tmp_path / "list", map(digest, samples))
    leaked = LeakedPasswords(path)
    assert leaked.has(samples[0])
    new = as_file(tmp_path / "new", [digest("another")])
    new.replace(path)
    assert [leaked.has("another"), leaked.has(samples[0])] == [True, False]
    with path.open("r+b") as file:
        file.truncate(20)  # a copy that has not ended
    with pytest.raises(ValueError, match="no list"):
        leaked.has("another")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        leaked.has("another")
    as_folder(path, map(digest, samples[:5]))
    assert leaked.has(samples[4])


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_short_files_are_searched_to_both_ends(tmp_path, samples, size):
    leaked = LeakedPasswords(as_file(tmp_path / "list", map(digest, samples[:size])))
    assert [leaked.has(each) for each in samples[:4]] == [n < size for n in range(4)]


@pytest.fixture
def app(make_app, tmp_path):
    as_file(tmp_path / "list", map(digest, [LEAKED, "password"]))
    return make_app(breached_passwords=tmp_path / "list")


def test_it_cannot_be_set_anywhere(app, rt, signed_in, user, admin, tmp_path):
    body = {"current_password": user.password, "new_password": LEAKED}
    answer = signed_in.call("PUT", "/api/v1/auth/password", body)
    assert REFUSED in answer.fails(400, "bad_request").json["msg"]
    new = {"username": "ada", "email": "ada@example.com", "password": LEAKED}
    stranger = signed_in.stranger()
    assert REFUSED in stranger.post("/auth/register", new).fails(400, "bad_request").json["msg"]
    stranger.login(admin).ok()
    assert REFUSED in stranger.post("/admin/users", new).fails(400, "bad_request").json["msg"]
    configure(rt, auth_password_breach_check="off")
    stranger.post("/admin/users", new).ok(201)


def test_a_list_that_cannot_be_read_refuses_nobody(app, signed_in, user, tmp_path, caplog):
    caplog.set_level(logging.ERROR)
    (tmp_path / "list").write_text("no list\n" * 99)
    body = {"current_password": user.password, "new_password": LEAKED}
    signed_in.call("PUT", "/api/v1/auth/password", body).ok()
    assert "the list of leaked passwords cannot be used" in caplog.text
    assert LEAKED not in caplog.text
