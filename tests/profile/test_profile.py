"""PATCH /auth/profile."""

import hashlib
import json

import pytest

from app.users.models import UserProfile
from tests.support.factories import audit_rows, configure, count

NO_AVATAR = {"source": "none", "url_512": None, "url_1024": None, "version": 0}


def patch(client, **body):
    return client.patch("/auth/profile", body)


def test_a_name_is_stored_trimmed_and_shown(signed_in):
    shown = patch(signed_in, display_name="  Ada Lovelace\u2003").ok()
    assert shown == {"display_name": "Ada Lovelace", "avatar": NO_AVATAR}
    assert signed_in.me().ok()["profile"] == shown


def test_absent_and_null_change_nothing(signed_in):
    patch(signed_in, display_name="Ada").ok()
    assert patch(signed_in).ok()["display_name"] == "Ada"
    assert patch(signed_in, display_name=None).ok()["display_name"] == "Ada"
    assert patch(signed_in, unknown="member").ok()["display_name"] == "Ada"


def test_an_empty_name_clears(signed_in):
    patch(signed_in, display_name="Ada").ok()
    assert patch(signed_in, display_name="\t\u2003").ok()["display_name"] is None
    assert signed_in.me().ok()["profile"]["display_name"] is None


@pytest.mark.both_databases
def test_the_row_is_made_with_the_first_name(rt, signed_in):
    patch(signed_in, display_name="").ok()
    patch(signed_in).ok()
    assert count(rt, UserProfile) == 0
    patch(signed_in, display_name="Ada").ok()
    assert count(rt, UserProfile) == 1


def test_64_characters_fit_however_many_bytes_they_are(signed_in):
    assert patch(signed_in, display_name="😀" * 64).ok()["display_name"] == "😀" * 64
    assert patch(signed_in, display_name=f" {'ä' * 64} ").ok()["display_name"] == "ä" * 64


def test_a_name_that_cannot_be_one_is_refused_and_changes_nothing(signed_in):
    patch(signed_in, display_name="Ada").ok()
    names = ["x" * 65, "😀" * 65, "two\nlines", "bell\x07", "nul\x00", "\ud800", 1, True, [], {}]
    codes = {repr(name): patch(signed_in, display_name=name).code for name in names}
    assert codes == dict.fromkeys(map(repr, names), "bad_request")
    assert signed_in.me().ok()["profile"]["display_name"] == "Ada"


def test_every_success_is_audited(rt, signed_in, user):
    patch(signed_in, display_name=" Ada ").ok()
    patch(signed_in).ok()
    patch(signed_in, display_name="x" * 65).fails(400, "bad_request")
    rows = audit_rows(rt, "user_update_profile")
    assert [json.loads(row.details) for row in rows] == [{"display_name": "Ada"}, {}]
    assert {(row.user_id, row.entity_type, row.entity_id) for row in rows} == {
        (user.id, "user", user.id)
    }


def test_the_avatar_is_not_touched(signed_in):
    signed_in.put("/auth/profile/avatar/source", {"source": "gravatar"}).ok()
    before = signed_in.me().ok()["profile"]["avatar"]
    assert patch(signed_in, display_name="Ada").ok()["avatar"] == before


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("https://faces.example.com/a///", "https://faces.example.com/a"),
        ("", "https://www.gravatar.com/avatar"),
    ],
)
def test_a_gravatar_has_an_address_per_size(rt, signed_in, base, expected):
    configure(rt, gravatar_base_url=base)
    avatar = signed_in.put("/auth/profile/avatar/source", {"source": "gravatar"}).ok()["avatar"]
    # The MD5 of this account's address, as Gravatar's documentation computes it.
    name = gravatar_name(signed_in.me().ok()["email"])
    assert avatar == {
        "source": "gravatar",
        "url_512": f"{expected}/{name}?d=identicon&s=512&r=g",
        "url_1024": f"{expected}/{name}?d=identicon&s=1024&r=g",
        "version": 1,
    }


def gravatar_name(email):
    return hashlib.md5(email.strip().lower().encode()).hexdigest()
