"""Uploads and switches of one account at the same moment."""

import io
import itertools
import json
from collections import Counter
from functools import partial
from threading import Event, Lock

import pytest
import sqlalchemy as sa
from PIL import Image

from app.avatars import files, render_process, service, upkeep
from app.avatars.errors import AvatarNotFound
from app.core.access import COMMAND_LINE
from app.user_admin import service as accounts
from app.users import queries
from app.users.models import UserProfile
from tests.support import images
from tests.support.factories import audit_rows, make_user
from tests.support.images import BLUE, RED, plain, shown, upload
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases

MANY = 8


def shade(number):
    """A colour of its own for each upload."""
    return (20 * number, 255 - 20 * number, 128)


def switch(client, source):
    return client.put("/auth/profile/avatar/source", {"source": source})


@pytest.fixture
def row(rt, user):
    def read():
        with rt.reading() as connection:
            return queries.find_account(connection, user.id)

    return read


def insist_on_agreement(rt, row, published, staged):
    """What the row names is there and whole, and there is nothing else."""
    account = row()
    name = files.name_of(account)
    assert published() == [f"{account.id}/{name.split('-')[0]}/{n}.webp" for n in (1024, 512)]
    for size in (512, 1024):
        path = files.path(rt.config.avatar_dir, account.id, name, size)
        with Image.open(path) as image:
            assert image.size == (size, size)
    assert staged() == []


def test_an_upload_that_was_overtaken_is_not_applied(rt, signed_in, row, published, staged):
    """The other upload is done while this one's body is still on its way."""
    twin = signed_in.twin()

    overtaken = slow_upload(signed_in, lambda: upload(twin, plain(BLUE)).ok())
    data = overtaken.ok()
    assert data["applied"] is False
    assert data["profile"] == signed_in.me().ok()["profile"]
    assert data["profile"]["avatar"]["version"] == 1
    assert shown(signed_in).getpixel((256, 256)) == BLUE
    insist_on_agreement(rt, row, published, staged)
    details = [json.loads(row.details) for row in audit_rows(rt, "user_upload_avatar")]
    assert [(d["version"], d["applied"]) for d in details] == [(1, True), (1, False)]


@pytest.mark.parametrize(
    ("source", "applied"), [("gravatar", False), ("uploaded", True)], ids=["other", "same"]
)
def test_a_switch_overtakes_an_upload_if_it_changes_something(signed_in, source, applied):
    upload(signed_in, plain(BLUE)).ok()
    twin = signed_in.twin()

    data = slow_upload(signed_in, lambda: switch(twin, source).ok()).ok()
    assert data["applied"] is applied
    assert data["profile"]["avatar"]["source"] == ("uploaded" if applied else "gravatar")


def test_a_new_name_does_not_overtake_an_upload(signed_in):
    twin = signed_in.twin()

    data = slow_upload(signed_in, lambda: twin.patch("/auth/profile", {"display_name": "Ada"})).ok()
    assert (data["applied"], data["profile"]["display_name"]) == (True, "Ada")


class Interrupted:
    """A body during which something else happens."""

    def __init__(self, content, meanwhile):
        self._content = io.BytesIO(content)
        self._meanwhile = [meanwhile]

    def read(self, size=-1):
        if self._meanwhile:
            self._meanwhile.pop()()
        return self._content.read(size)


def slow_upload(client, meanwhile):
    """Upload, and have something else happen while the body is on its way."""
    body = images.multipart(plain(RED))
    return client.call(
        "POST",
        "/auth/profile/avatar/upload",
        environ_overrides={
            "CONTENT_TYPE": images.headers()["Content-Type"],
            "wsgi.input": Interrupted(body, meanwhile),
            "CONTENT_LENGTH": str(len(body)),
        },
    )


def test_of_many_uploads_at_once_each_that_is_applied_was_current(
    rt, signed_in, row, published, staged
):
    jobs = [partial(upload, signed_in.twin(), plain(shade(number))) for number in range(MANY)]
    answers = [answer.ok() for answer in run_concurrently(jobs)]
    applied = [data["profile"]["avatar"]["version"] for data in answers if data["applied"]]
    assert sorted(applied) == list(range(1, len(applied) + 1))
    assert row().avatar_version == len(applied) >= 1
    last = next(
        number
        for number, data in enumerate(answers)
        if data["applied"] and data["profile"]["avatar"]["version"] == len(applied)
    )
    assert shown(signed_in).getpixel((256, 256)) == shade(last)
    insist_on_agreement(rt, row, published, staged)


def test_uploads_switches_and_readers_at_once_never_disagree(rt, signed_in, row, published, staged):
    upload(signed_in, plain(BLUE)).ok()
    readers = [signed_in.twin() for _ in range(4)]
    ended = []

    def noting_its_end(job):
        try:
            return job()
        finally:
            ended.append(job)

    def read_on(client):
        """Look 10 times, and then on while there was nothing to see and may be yet."""
        seen = []
        looks = itertools.count()
        while next(looks) < 10 or (not seen and len(ended) < len(jobs)):
            answer = client.get("/auth/profile/avatar/512")
            if answer.status == 200:
                version = int(answer.headers["ETag"].split("-")[0].removeprefix('"v'))
                with Image.open(io.BytesIO(answer.body)) as image:
                    seen.append((version, image.convert("RGB").getpixel((256, 256))))
            else:
                answer.fails(404, "not_found")  # the source was another at that moment
        return seen

    jobs = [partial(upload, signed_in.twin(), plain(shade(n))) for n in range(MANY)]
    sources = ["gravatar", "uploaded", "none", "uploaded"] * 2
    jobs += [partial(switch, signed_in.twin(), source) for source in sources]
    noted = [partial(noting_its_end, job) for job in jobs]
    done = run_concurrently([*noted, *(partial(read_on, reader) for reader in readers)])
    answers, seen = done[:-4], done[-4:]
    assert {answer.status for answer in answers} == {200}
    uploads, changes = answers[:MANY], answers[MANY:]
    applied = [a.data["profile"]["avatar"]["version"] for a in uploads if a.data["applied"]]
    assert len(set(applied)) == len(applied)
    # What was served is what was uploaded as that version, and never an older one than before.
    colors = {1: BLUE} | {
        answer.data["profile"]["avatar"]["version"]: shade(number)
        for number, answer in enumerate(uploads)
        if answer.data["applied"]
    }
    assert any(seen)
    for told in seen:
        assert told == sorted(told)
        assert all(colors[version] == color for version, color in told)
    versions = [json.loads(entry.details).get("version") for entry in audit_rows(rt)]
    versions = [version for version in versions if version is not None]
    assert versions == sorted(versions)
    assert row().avatar_version == 1 + len(applied) + count_of_changes(rt)
    assert all(change.ok() for change in changes)
    insist_on_agreement(rt, row, published, staged)


def count_of_changes(rt):
    return len(audit_rows(rt, "user_set_avatar_source"))


def test_a_cleanup_beside_uploads_takes_nothing_that_is_needed(
    rt, signed_in, row, published, staged
):
    upload(signed_in, plain(BLUE)).ok()

    def clean_up():
        return [upkeep.cleanup(rt) for _ in range(10)]

    jobs = [partial(upload, signed_in.twin(), plain(shade(n))) for n in range(MANY)]
    done = run_concurrently([*jobs, clean_up, clean_up])
    assert {answer.status for answer in done[:MANY]} == {200}
    assert sum(map(sum, done[MANY:])) <= MANY  # a replaced avatar it met before its removal
    insist_on_agreement(rt, row, published, staged)


def test_an_upload_of_an_account_that_is_deleted_meanwhile_leaves_nothing(
    rt, signed_in, user, folder, staged
):
    answer = slow_upload(signed_in, lambda: accounts.delete(rt, COMMAND_LINE, str(user.id)))
    answer.fails(401, "auth.token_invalid")
    assert staged() == []
    assert not (folder / "user" / str(user.id)).exists()
    with pytest.raises(AvatarNotFound):
        service.read(rt, service.Picture(user.id, files.new_name(1), 512))


@pytest.mark.postgres
def test_a_commit_that_fails_after_the_files_were_put_in_place_takes_them_back(
    rt, signed_in, row, published, staged
):
    upload(signed_in, plain(BLUE)).ok()
    function = (
        "CREATE FUNCTION refuse() RETURNS trigger AS"
        " $$ BEGIN RAISE EXCEPTION 'refused'; END $$ LANGUAGE plpgsql"
    )
    trigger = (
        "CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON user_profiles"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    with rt.transaction() as session:
        session.execute(sa.text(function))
        session.execute(sa.text(trigger))
    try:
        assert upload(signed_in, plain(RED), described=False).status >= 500
    finally:
        with rt.transaction() as session:
            session.execute(sa.text("DROP FUNCTION refuse CASCADE"))
    assert shown(signed_in).getpixel((256, 256)) == BLUE
    insist_on_agreement(rt, row, published, staged)
    assert upload(signed_in, plain(RED)).ok()["profile"]["avatar"]["version"] == 2


def test_an_account_has_so_many_uploads_under_way_and_no_more(signed_in, admin, monkeypatch):
    """Each may take half an hour, and holds what has arrived until then."""
    monkeypatch.setattr(service, "MAX_UPLOADS", 2)
    second, third, theirs = signed_in.twin(), signed_in.twin(), signed_in.stranger()
    theirs.login(admin).ok()

    def while_the_second_is_under_way():
        refusal = upload(third, plain(RED)).fails(429, "rate_limited")
        assert refusal.retry_after == service.RETRY_SECONDS
        upload(theirs, plain(RED)).ok()

    def while_the_first_is_under_way():
        slow_upload(second, while_the_second_is_under_way).ok()

    slow_upload(signed_in, while_the_first_is_under_way).ok()
    upload(signed_in, b"no image").fails(400, "file.type_not_allowed")
    for _ in range(3):
        upload(third, plain(RED)).ok()


@pytest.fixture
def watched(monkeypatch):
    """Count renders that go on at once, of all and of each account; hold each until `together`."""
    lock, render, together = Lock(), render_process.render, Event()
    running, most = Counter(), Counter()

    def render_watched(source, folder):
        user_id = int(folder.parent.name.partition("-")[0])
        with lock:
            for whose in ("all", user_id):
                running[whose] += 1
                most[whose] = max(most[whose], running[whose])
            if running["all"] > 1:
                together.set()
        together.wait(20)
        try:
            return render(source, folder)
        finally:
            with lock:
                running["all"] -= 1
                running[user_id] -= 1

    monkeypatch.setattr(render_process, "render", render_watched)
    return most


def test_no_more_than_two_are_rendered_at_once(rt, signed_in, watched):
    clients = []
    for _ in range(MANY // 2):
        clients.append(signed_in.stranger())
        clients[-1].login(make_user(rt)).ok()
    jobs = [partial(upload, client, plain(RED)) for client in clients for _ in range(2)]
    assert {answer.status for answer in run_concurrently(jobs)} == {200}
    assert watched["all"] == 2


def test_one_account_keeps_nobody_waiting_by_many_uploads(signed_in, admin, user, watched):
    """Its images are rendered one after the other, however many it sends."""
    theirs = signed_in.stranger()
    theirs.login(admin).ok()
    jobs = [partial(upload, signed_in.twin(), plain(shade(number))) for number in range(4)]
    jobs.append(partial(upload, theirs, plain(BLUE)))
    assert {answer.status for answer in run_concurrently(jobs)} == {200}
    assert (watched[user.id], watched[admin.id], watched["all"]) == (1, 1, 2)


def test_the_row_of_another_account_is_never_touched(rt, signed_in, admin, user):
    theirs = signed_in.stranger()
    theirs.login(admin).ok()
    jobs = [
        partial(upload, client, plain(color))
        for client, color in ((signed_in, RED), (theirs, BLUE))
    ]
    for answer in run_concurrently(jobs):
        assert answer.ok()["applied"]
    assert shown(signed_in).getpixel((256, 256)) == RED
    assert shown(theirs).getpixel((256, 256)) == BLUE
    with rt.reading() as connection:
        keys = dict(
            connection.execute(sa.select(UserProfile.user_id, UserProfile.avatar_key)).all()
        )
    assert all(key.startswith(f"user/{user_id}/") for user_id, key in keys.items())
    assert set(keys) == {user.id, admin.id}
