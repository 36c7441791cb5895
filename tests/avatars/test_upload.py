"""POST /auth/profile/avatar/upload: the body, the limits, the answer."""

import json
import os

import pytest

from app.users.models import UserProfile
from tests.support import images
from tests.support.api import ApiClient
from tests.support.factories import (
    audit_rows,
    change_user,
    column_of,
    configure,
    count,
    make_user,
)
from tests.support.images import BLUE, GREEN, RED, joined, part, plain, send, shown, upload

AVATAR = "/auth/profile/avatar"


def test_an_upload_becomes_the_avatar(signed_in, user, published, staged):
    data = upload(signed_in, plain()).ok()
    assert data["applied"] is True
    assert data["profile"] == {
        "display_name": None,
        "avatar": {
            "source": "uploaded",
            "url_512": "/auth/profile/avatar/512?v=1",
            "url_1024": "/auth/profile/avatar/1024?v=1",
            "version": 1,
        },
    }
    assert signed_in.me().ok()["profile"] == data["profile"]
    assert shown(signed_in, 512).size == (512, 512)
    assert shown(signed_in, 1024).size == (1024, 1024)
    assert published() == [f"{user.id}/v1/1024.webp", f"{user.id}/v1/512.webp"]
    assert staged() == []


@pytest.mark.both_databases
def test_the_next_upload_replaces_it_with_its_files(signed_in, user, published, staged):
    upload(signed_in, plain(RED)).ok()
    data = upload(signed_in, plain(BLUE)).ok()
    assert (data["applied"], data["profile"]["avatar"]["version"]) == (True, 2)
    assert shown(signed_in).getpixel((256, 256)) == BLUE
    assert published() == [f"{user.id}/v2/1024.webp", f"{user.id}/v2/512.webp"]
    assert staged() == []


def test_the_name_is_kept(signed_in):
    signed_in.patch("/auth/profile", {"display_name": "Ada"}).ok()
    assert upload(signed_in, plain()).ok()["profile"]["display_name"] == "Ada"


def test_storage_used_and_the_account_itself_are_not_touched(rt, signed_in, user, clock):
    before = column_of(rt, user, "updated_at")
    clock.advance(seconds=9)
    upload(signed_in, plain()).ok()
    assert column_of(rt, user, "storage_used") == 0
    assert column_of(rt, user, "updated_at") == before


def test_every_outcome_that_is_an_answer_is_audited(rt, signed_in, user):
    upload(signed_in, plain()).ok()
    upload(signed_in, b"no image").fails(400, "file.type_not_allowed")
    [row] = audit_rows(rt, "user_upload_avatar")
    assert json.loads(row.details) == {"source": "uploaded", "version": 1, "applied": True}
    assert (row.user_id, row.entity_type, row.entity_id) == (user.id, "user", user.id)


# --- the body ---------------------------------------------------------------------------------


def test_the_name_of_the_field_does_not_matter(signed_in):
    send(signed_in, joined(part(plain(), name="whatever"))).ok()
    send(signed_in, joined(part(plain(), name=""))).ok()


@pytest.mark.parametrize("filename", ["a.txt", "no extension", "ümlaut.png", "../../x", "x" * 3000])
def test_the_file_name_says_nothing(signed_in, filename, published, user):
    send(signed_in, joined(part(plain(), filename=filename))).ok()
    assert len(published()) == 2


def test_a_file_name_may_have_any_encoding(signed_in):
    """On Windows, curl sends it in that of the system."""
    body = joined(part(plain(), filename="NAME")).replace(b"NAME", b"gr\xf6\xdfe \x85.png")
    assert send(signed_in, body).ok()["applied"] is True


def test_fields_before_and_after_the_file_are_thrown_away(signed_in):
    body = joined(
        part(b"a field", filename=None, name="token"),
        part(b"x" * 200_000, filename="", name="empty"),
        part(b"", filename="  ", name="blank"),
        part(plain(GREEN)),
        part(b"more", filename=None),
    )
    send(signed_in, body).ok()
    assert shown(signed_in).getpixel((256, 256)) == GREEN


def test_of_two_files_the_first_counts(signed_in):
    send(signed_in, joined(part(plain(RED)), part(plain(BLUE)))).ok()
    assert shown(signed_in).getpixel((256, 256)) == RED


def test_text_around_the_parts_is_allowed(signed_in):
    send(signed_in, b"preamble\r\n" + joined(part(plain())) + b"epilogue\r\n" * 3).ok()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        joined(),
        joined(part(b"a field", filename=None)),
        joined(part(plain(), filename="")),
        joined(part(plain(), filename="   ")),
        joined(part(plain(), filename="\u3000")),
        joined(part(b"")),
        joined(part(b""), part(plain())),
    ],
    ids=[
        "empty",
        "no part",
        "no file",
        "no name",
        "blank name",
        "wide blank name",
        "empty file",
        "empty file first",
    ],
)
def test_without_a_file_there_is_nothing_to_do(signed_in, body, staged):
    send(signed_in, body).fails(400, "avatar.file_required")
    assert staged() == []


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=another",
        f"multipart/mixed; boundary={images.BOUNDARY}",
        "application/octet-stream",
        "image/png",
        "application/json",
        "",
    ],
)
def test_a_body_that_is_not_what_its_type_says_cannot_be_read(signed_in, content_type, staged):
    send(signed_in, joined(part(plain())), content_type).fails(400, "avatar.upload_read_failed")
    assert staged() == []


WHOLE = joined(part(plain()))


@pytest.mark.parametrize(
    "body",
    [
        WHOLE[: len(WHOLE) // 2],
        WHOLE[:-4],
        WHOLE[:10],
        b"nonsense",
        b"--" + images.BOUNDARY.encode() + b"\r\n",
        WHOLE.replace(b"Content-Disposition", b"Content-Nonsense"),
        WHOLE.replace(b"\r\n\r\n", b"\n\n", 1),
        WHOLE.replace(
            b"Content-Disposition: ", b"X: " + b"y" * 10_000 + b"\r\nContent-Disposition: "
        ),
        joined(*[part(b"x", filename=None)] * 101, part(plain())),
    ],
    ids=["half", "no end", "start", "nonsense", "boundary", "nameless", "lines", "header", "parts"],
)
def test_a_damaged_body_cannot_be_read(signed_in, body, staged):
    send(signed_in, body).fails(400, "avatar.upload_read_failed")
    assert staged() == []


# --- limits -----------------------------------------------------------------------------------


def padded(size: int) -> bytes:
    """Return an image file of exactly this size: what follows a PNG's end is not looked at."""
    return plain().ljust(size, b"\0")


def test_the_limit_is_inclusive(rt, signed_in, staged):
    configure(rt, avatar_max_upload_size_bytes=5000)
    upload(signed_in, padded(5000)).ok()
    upload(signed_in, padded(5001)).fails(400, "file.too_large")
    assert shown(signed_in).size == (512, 512)
    assert staged() == []


def test_ten_mebibytes_is_the_default(signed_in, staged):
    upload(signed_in, padded(10 * 2**20)).ok()
    upload(signed_in, padded(10 * 2**20 + 1)).fails(400, "file.too_large")
    assert staged() == []


def test_sixteen_mebibytes_is_the_ceiling(rt, signed_in, staged):
    configure(rt, avatar_max_upload_size_bytes=16 * 2**20)
    upload(signed_in, padded(16 * 2**20)).ok()
    upload(signed_in, padded(16 * 2**20 + 1)).fails(400, "file.too_large")
    assert staged() == []


def test_what_is_thrown_away_has_the_same_limit_of_its_own(rt, signed_in):
    configure(rt, avatar_max_upload_size_bytes=5000)
    field = part(b"x" * 2500, filename=None)
    send(signed_in, joined(field, field, part(padded(5000)))).ok()
    send(signed_in, joined(field, field, part(b"x", filename=None), part(plain()))).fails(
        400, "file.too_large"
    )
    send(signed_in, b"\r\n" * 2**20 + joined(part(plain()))).fails(400, "file.too_large")


@pytest.mark.parametrize("room", [0, 1, 10**9])
def test_the_quota_must_have_room_for_both_files(rt, signed_in, user, folder, published, room):
    upload(signed_in, plain(RED)).ok()
    needed = sum(file.stat().st_size for file in (folder / "user").rglob("*.webp"))
    change_user(rt, user, storage_used=1000, storage_quota=1000 + needed + room)
    upload(signed_in, plain(RED)).ok()
    change_user(rt, user, storage_quota=1000 + needed - 1)
    answer = upload(signed_in, plain(RED)).fails(507, "storage.quota_exceeded")
    quota = 1000 + needed - 1
    assert answer.json["msg"] == f"quota {quota}, used 1000, need {needed}"
    assert published() == [f"{user.id}/v2/1024.webp", f"{user.id}/v2/512.webp"]
    assert signed_in.me().ok()["profile"]["avatar"]["version"] == 2
    change_user(rt, user, storage_used=10**12, storage_quota=0)
    upload(signed_in, plain(RED)).ok()


# --- who --------------------------------------------------------------------------------------


def test_a_bearer_may_upload_and_a_page_needs_its_csrf_token(signed_in):
    upload(signed_in.bearer(), plain()).ok()
    page = signed_in.browser()
    upload(page, plain()).ok()
    page.drop_cookie("service_csrf")
    upload(page, plain()).fails(403, "auth.csrf_cookie_missing")


def test_a_disk_that_fails_is_told_apart_and_changes_nothing(rt, signed_in, folder, staged):
    upload(signed_in, plain(RED)).ok()
    (folder / "staging").rmdir()
    (folder / "staging").write_text("a file where a folder should be")
    upload(signed_in, plain(BLUE)).fails(500, "storage.unknown")
    (folder / "staging").unlink()
    assert shown(signed_in).getpixel((256, 256)) == RED
    upload(signed_in, plain(BLUE)).ok()


def test_a_folder_that_cannot_take_the_files_changes_nothing(
    rt, signed_in, user, folder, staged, published
):
    (folder / "user").mkdir(parents=True)
    (folder / "user" / str(user.id)).write_text("a file where a folder should be")
    upload(signed_in, plain(BLUE)).fails(500, "storage.unknown")
    assert signed_in.me().ok()["profile"]["avatar"]["version"] == 0
    assert count(rt, UserProfile) == 0
    assert audit_rows(rt, "user_upload_avatar") == []
    (folder / "user" / str(user.id)).unlink(missing_ok=True)
    upload(signed_in, plain(BLUE)).ok()


def test_the_owners_group_gets_to_the_files_through_folders_the_service_made(make_app, tmp_path):
    """A proxy that sends them (docs/operations.md); workers let nobody else in by default."""
    root = tmp_path / "made" / "avatars"
    before = os.umask(0o077)
    try:
        app = make_app(avatar_dir=root)
        client = ApiClient(app)
        client.login(make_user(app.extensions["gatehouse"])).ok()
        upload(client, plain()).ok()
    finally:
        os.umask(before)
    folders = [root, *(path for path in (root / "user").rglob("*") if path.is_dir())]
    assert {path.stat().st_mode & 0o777 for path in [*folders, root / "user"]} == {0o750}


def test_files_are_open_to_the_owners_group_and_nobody_else(signed_in, folder):
    upload(signed_in, plain()).ok()
    modes = {path.stat().st_mode & 0o777 for path in (folder / "user").rglob("*.webp")}
    assert modes == {0o640}
    assert (folder / "staging").stat().st_mode & 0o777 == 0o700
