"""GET /auth/profile/avatar/{size}."""

import shutil

import pytest
import sqlalchemy as sa

from app.avatars import service
from app.core.config import Config, ConfigError
from app.users import queries
from app.users.models import UserProfile
from tests.support.api import ApiClient
from tests.support.factories import make_user
from tests.support.images import BLUE, RED, plain, shown, upload

PATH = "/auth/profile/avatar/512"
FOREVER = "private, max-age=31536000, immutable"


def set_key(rt, user, key):
    with rt.transaction() as session:
        session.execute(
            sa.update(UserProfile).where(UserProfile.user_id == user.id).values(avatar_key=key)
        )


def key_of(rt, user):
    with rt.reading() as connection:
        statement = sa.select(UserProfile.avatar_key).where(UserProfile.user_id == user.id)
        return connection.execute(statement).scalar()


def test_the_file_is_sent_with_headers_to_keep_it(signed_in):
    upload(signed_in, plain()).ok()
    answer = signed_in.get(f"{PATH}?v=1")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/webp")
    assert answer.headers["Cache-Control"] == FOREVER
    assert answer.headers["ETag"].startswith('"v1-')
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert answer.body[:4] == b"RIFF"
    # Two people of one browser can have avatars of the same version.
    assert answer.headers["Vary"] == "Authorization, Cookie"


def test_head_and_bearer_work_too(signed_in):
    upload(signed_in, plain()).ok()
    answer = signed_in.call("HEAD", PATH)
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 0
    assert signed_in.bearer().get(PATH).status == 200


def test_who_has_it_already_is_not_sent_it_again(signed_in):
    upload(signed_in, plain()).ok()
    etag = signed_in.get(PATH).headers["ETag"]
    for held in (etag, f'"other", {etag}', f"W/{etag}", "*"):
        answer = signed_in.get(PATH, headers={"If-None-Match": held})
        assert (answer.status, answer.body) == (304, b"")
        assert (answer.headers["ETag"], answer.headers["Cache-Control"]) == (etag, FOREVER)
        assert "Content-Type" not in answer.headers
    for held in ('"other"', "nonsense", ""):
        assert signed_in.get(PATH, headers={"If-None-Match": held}).status == 200


def test_each_size_and_each_upload_has_a_tag_of_its_own(signed_in):
    tags = set()
    for _ in range(2):
        upload(signed_in, plain()).ok()
        tags |= {signed_in.get(f"/auth/profile/avatar/{n}").headers["ETag"] for n in (512, 1024)}
    assert len(tags) == 4


@pytest.mark.parametrize("size", ["0", "1", "64", "511", "513", "2048", "-512", "0512", "9" * 400])
def test_another_size_is_refused(signed_in, size):
    upload(signed_in, plain()).ok()
    signed_in.get(f"/auth/profile/avatar/{size}").fails(400, "bad_request")


@pytest.mark.parametrize(
    "size", ["large", "512.webp", "51%32%0a", "+512", "--512", "٥١٢", "%00", "5e2"]
)
def test_what_is_no_number_is_not_found(signed_in, size):
    upload(signed_in, plain()).ok()
    signed_in.get(f"/auth/profile/avatar/{size}").fails(404, "not_found")


@pytest.mark.parametrize(("neighbour", "method"), [("upload", "POST"), ("source", "PUT")])
def test_the_routes_beside_it_are_not_taken_for_sizes(signed_in, neighbour, method):
    path = f"/auth/profile/avatar/{neighbour}"
    answer = signed_in.get(path, described=False).fails(405, "endpoint.not_found")
    assert set(answer.headers["Allow"].split(", ")) == {method, "OPTIONS"}


def test_without_an_uploaded_avatar_there_is_nothing(signed_in):
    signed_in.get(PATH).fails(404, "not_found")
    signed_in.put("/auth/profile/avatar/source", {"source": "gravatar"}).ok()
    signed_in.get(PATH).fails(404, "not_found")
    upload(signed_in, plain()).ok()
    signed_in.put("/auth/profile/avatar/source", {"source": "none"}).ok()
    signed_in.get(PATH).fails(404, "not_found")


def test_everybody_sees_their_own(rt, signed_in, admin):
    upload(signed_in, plain(RED)).ok()
    theirs = signed_in.stranger()
    theirs.login(admin).ok()
    theirs.get(PATH).fails(404, "not_found")
    upload(theirs, plain(BLUE)).ok()
    assert shown(theirs).getpixel((256, 256)) == BLUE
    assert shown(signed_in).getpixel((256, 256)) == RED


def test_a_key_that_was_tampered_with_opens_nothing(rt, signed_in, user, admin):
    theirs = signed_in.stranger()
    theirs.login(admin).ok()
    upload(theirs, plain(BLUE)).ok()
    upload(signed_in, plain(RED)).ok()
    ours = key_of(rt, user)
    name = ours.rpartition("/")[2]
    for key in (
        key_of(rt, admin),
        f"user/{user.id}/../{admin.id}/{key_of(rt, admin).rpartition('/')[2]}",
        f"/{ours}",
        f"{ours}/",
        f"{ours}\n",
        f"user/0{user.id}/{name}",
        f"user/{user.id}/v1",
        "/etc",
        "",
    ):
        set_key(rt, user, key)
        signed_in.get(PATH).fails(404, "not_found")
    set_key(rt, user, ours)
    assert shown(signed_in).getpixel((256, 256)) == RED


@pytest.mark.parametrize("key", [None, "", "  "])
def test_without_a_key_there_is_no_address(rt, signed_in, user, key):
    """`uploaded`, but the stored key is blank."""
    upload(signed_in, plain()).ok()
    set_key(rt, user, key)
    avatar = signed_in.me().ok()["profile"]["avatar"]
    assert avatar == {"source": "uploaded", "url_512": None, "url_1024": None, "version": 1}


def test_files_that_are_missing_are_not_found(signed_in, folder):
    upload(signed_in, plain()).ok()
    shutil.rmtree(folder / "user")
    signed_in.get(PATH).fails(404, "not_found")


def test_a_disk_that_cannot_be_read_is_told_apart(signed_in, folder):
    upload(signed_in, plain()).ok()
    [file] = (folder / "user").rglob("512.webp")
    file.unlink()
    file.mkdir()
    signed_in.get(PATH).fails(500, "storage.unknown")


def test_who_read_the_row_before_a_new_upload_is_sent_the_new_one(rt, signed_in, user):
    """Between the access check and the disk another request may replace the files."""
    upload(signed_in, plain(RED)).ok()
    with rt.reading() as connection:
        before = queries.find_account(connection, user.id)
    upload(signed_in, plain(BLUE)).ok()
    stale = service.picture(before, "512")
    newer, content = service.read(rt, stale)
    assert newer.name.startswith("v2-")
    assert content == signed_in.get(PATH).body
    assert service.found(rt, stale) == newer


def test_a_proxy_is_told_where_the_file_is(make_app, folder_of):
    app = make_app(avatar_accel="/internal/avatars")
    client, user = signed_in_client(app)
    upload(client, plain()).ok()
    answer = client.get(PATH)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Content-Type"] == "image/webp"
    assert answer.headers["Cache-Control"] == FOREVER
    path = answer.headers["X-Accel-Redirect"]
    assert path.startswith(f"/internal/avatars/user/{user.id}/v1-")
    assert (folder_of(app) / path.removeprefix("/internal/avatars/")).is_file()
    etag = answer.headers["ETag"]
    answer = client.get(PATH, headers={"If-None-Match": etag})
    assert answer.status == 304
    assert "X-Accel-Redirect" not in answer.headers
    shutil.rmtree(folder_of(app) / "user")
    client.get(PATH).fails(404, "not_found")


@pytest.fixture
def folder_of():
    return lambda app: app.extensions["gatehouse"].config.avatar_dir


def signed_in_client(app):
    rt = app.extensions["gatehouse"]
    user = make_user(rt)
    client = ApiClient(app)
    client.login(user).ok()
    return client, user


@pytest.mark.parametrize(
    "path", ["internal", "http://host/x", "/", "//host", "/a b", "/a;b", "/a/../"]
)
def test_a_location_that_cannot_be_one_stops_the_start(path):
    with pytest.raises(ConfigError, match="GATEHOUSE_AVATAR_ACCEL"):
        Config.from_env({"GATEHOUSE_AVATAR_ACCEL": path})


def test_a_location_may_end_with_a_slash():
    for path in ("/internal/avatars", "/internal/avatars/"):
        config = Config.from_env({"GATEHOUSE_AVATAR_ACCEL": path})
        assert config.avatar_accel == "/internal/avatars"
