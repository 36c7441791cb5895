"""PUT /auth/profile/avatar/source."""

import json
import shutil

import pytest
import sqlalchemy as sa

from app.users.models import UserProfile
from tests.support.factories import audit_rows, count
from tests.support.images import BLUE, RED, plain, shown, upload


def switch(client, source):
    return client.put("/auth/profile/avatar/source", {"source": source})


def version(client):
    return client.me().ok()["profile"]["avatar"]["version"]


@pytest.mark.both_databases
def test_switching_away_and_back_keeps_the_files(signed_in, published):
    upload(signed_in, plain(RED)).ok()
    files = published()
    avatar = switch(signed_in, "none").ok()["avatar"]
    assert avatar == {"source": "none", "url_512": None, "url_1024": None, "version": 2}
    assert published() == files
    avatar = switch(signed_in, "gravatar").ok()["avatar"]
    assert (avatar["source"], avatar["version"]) == ("gravatar", 3)
    avatar = switch(signed_in, "uploaded").ok()["avatar"]
    assert avatar == {
        "source": "uploaded",
        "url_512": "/auth/profile/avatar/512?v=4",
        "url_1024": "/auth/profile/avatar/1024?v=4",
        "version": 4,
    }
    assert published() == files
    assert shown(signed_in).getpixel((256, 256)) == RED


def test_an_upload_after_a_switch_takes_the_place_of_the_kept_files(signed_in, published, user):
    upload(signed_in, plain(RED)).ok()
    switch(signed_in, "gravatar").ok()
    assert upload(signed_in, plain(BLUE)).ok()["profile"]["avatar"]["source"] == "uploaded"
    assert published() == [f"{user.id}/v3/1024.webp", f"{user.id}/v3/512.webp"]


@pytest.mark.parametrize("source", ["none", "gravatar", "uploaded"])
def test_the_present_source_again_changes_nothing(rt, signed_in, source, clock):
    upload(signed_in, plain()).ok()
    first = switch(signed_in, source).ok()
    before = len(audit_rows(rt, "user_set_avatar_source"))
    assert switch(signed_in, source).ok() == first
    assert len(audit_rows(rt, "user_set_avatar_source")) == before


def test_the_first_switch_makes_the_row_and_none_needs_no_row(rt, signed_in):
    assert switch(signed_in, "none").ok()["avatar"]["version"] == 0
    assert count(rt, UserProfile) == 0
    assert switch(signed_in, "gravatar").ok()["avatar"]["version"] == 1
    assert switch(signed_in, "none").ok()["avatar"]["version"] == 2


def test_a_name_alone_is_no_change_of_the_avatar(signed_in):
    signed_in.patch("/auth/profile", {"display_name": "Ada"}).ok()
    assert version(signed_in) == 0
    assert switch(signed_in, "gravatar").ok()["avatar"]["version"] == 1
    assert signed_in.me().ok()["profile"]["display_name"] == "Ada"


def test_there_must_be_something_to_switch_back_to(rt, signed_in, folder):
    switch(signed_in, "uploaded").fails(400, "bad_request")
    switch(signed_in, "gravatar").ok()
    switch(signed_in, "uploaded").fails(400, "bad_request")
    upload(signed_in, plain()).ok()
    switch(signed_in, "none").ok()
    shutil.rmtree(folder / "user")
    switch(signed_in, "uploaded").fails(400, "bad_request")
    assert version(signed_in) == 3


def set_version(rt, number):
    with rt.transaction() as session:
        session.execute(sa.update(UserProfile).values(avatar_version=number))


def test_the_last_version_is_used_and_none_follows(rt, signed_in, published, staged, user):
    """It is an int32 on the wire, whatever the database has room for."""
    last = 2**31 - 1
    upload(signed_in, plain(RED)).ok()
    set_version(rt, last - 1)
    assert upload(signed_in, plain(BLUE)).ok()["profile"]["avatar"]["version"] == last
    files = published()
    assert len(files) == 2
    before, rows = signed_in.me().ok()["profile"], len(audit_rows(rt))

    upload(signed_in, plain(RED)).fails(500, "internal_server_error")
    switch(signed_in, "none").fails(500, "internal_server_error")
    assert switch(signed_in, "uploaded").ok() == before
    assert signed_in.me().ok()["profile"] == before
    assert (published(), staged(), len(audit_rows(rt))) == (files, [], rows)
    assert shown(signed_in).getpixel((256, 256)) == BLUE

    set_version(rt, last - 1)
    assert switch(signed_in, "none").ok()["avatar"]["version"] == last
    switch(signed_in, "uploaded").fails(500, "internal_server_error")


@pytest.mark.parametrize(
    "body",
    [{}, *({"source": value} for value in ("upload", "", "GRAVATAR", None, 1, [], " none"))],
    ids=repr,
)
def test_any_other_value_is_refused(signed_in, body):
    signed_in.put("/auth/profile/avatar/source", body).fails(400, "bad_request")


def test_real_changes_are_audited(rt, signed_in, user):
    for source in ("gravatar", "gravatar", "none"):
        switch(signed_in, source).ok()
    rows = audit_rows(rt, "user_set_avatar_source")
    assert [json.loads(row.details) for row in rows] == [{"source": "gravatar"}, {"source": "none"}]
    assert {(row.user_id, row.entity_id) for row in rows} == {(user.id, user.id)}
