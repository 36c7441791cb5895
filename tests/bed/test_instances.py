"""Two instances act as one service."""

import time
from contextlib import ExitStack
from functools import partial

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from PIL import Image

from app.core.config import MIGRATIONS
from app.storage_policies.models import StoragePolicy, StoragePolicyGroup
from tests.support.factories import audit_rows, configure, count
from tests.support.images import BLUE, RED, plain, upload
from tests.support.live import eventually
from tests.support.races import run_concurrently


@pytest.fixture
def pair(bed):
    """A client of each instance."""
    with bed.instances[0].client() as one, bed.instances[1].client() as two:
        yield one, two


def test_both_brought_one_empty_database_up_to_date_at_the_same_time(bed):
    assert bed.prepare_exit_codes == [0, 0]
    with bed.rt.reading() as connection:
        versions = connection.execute(sa.text("SELECT version_num FROM alembic_version")).all()
    assert versions == [(ScriptDirectory(str(MIGRATIONS)).get_current_head(),)]
    assert count(bed.rt, StoragePolicy) == count(bed.rt, StoragePolicyGroup) == 1


def test_who_signs_in_on_one_is_known_to_the_other(bed, user, pair):
    one, two = pair
    one.login(user).ok()
    two.cookies = dict(one.cookies)
    assert two.me().ok()["username"] == user.username
    two.refresh().ok()
    one.me().ok()
    with bed.client() as through_nginx:
        through_nginx.cookies = dict(two.cookies)
        through_nginx.me().ok()


def test_a_picture_that_is_uploaded_to_one_is_shown_by_the_other(bed, user, pair):
    one, two = pair
    one.login(user).ok()
    two.cookies = dict(one.cookies)
    for client, other, colour in ((one, two, RED), (two, one, BLUE)):
        upload(client, plain(colour)).ok()
        where = other.get("/auth/profile/avatar/512").headers["X-Accel-Redirect"]
        file = bed.avatars / where.removeprefix("/internal/avatars/")
        with Image.open(file) as picture:
            assert picture.getpixel((256, 256)) == colour
    own = bed.avatars / "user" / str(user.id)
    assert len(list(own.rglob("512.webp"))) == 1


def test_a_session_that_ends_on_one_has_ended_on_the_other(user, pair):
    one, two = pair
    for client in pair:
        client.login(user).ok()
        client.me().ok()
    one.delete("/auth/sessions/others").ok()
    two.me().fails(401, "auth.token_invalid")
    two.refresh().fails(401, "auth.token_invalid")


def test_of_refreshes_on_both_exactly_one_succeeds_and_the_session_lives(bed, user):
    with ExitStack() as stack:
        clients = [stack.enter_context(bed.instances[n % 2].client()) for n in range(12)]
        clients[0].login(user).ok()
        for client in clients:
            client.get("/health")
            client.cookies = dict(clients[0].cookies)
        arrived = {"X-Request-Start": f"t={time.time():.3f}"}  # as nginx sends it
        answers = run_concurrently([partial(client.refresh, headers=arrived) for client in clients])
        codes = sorted(answer.code for answer in answers)
        assert codes == ["auth.refresh_token_stale"] * 11 + ["success"]
        next(c for c, a in zip(clients, answers, strict=True) if a.status == 200).me().ok()
    assert audit_rows(bed.rt, "user_refresh_token_reuse_detected") == []


def test_a_token_that_was_used_on_one_raises_the_alarm_on_the_other(user, pair):
    one, thief = pair
    one.login(user).ok()
    thief.cookies = dict(one.cookies)
    one.refresh().ok()
    thief.refresh().fails(401, "auth.refresh_token_reuse_detected")
    one.me().fails(401, "auth.token_invalid")


def test_a_setting_changed_elsewhere_is_soon_in_force_on_both(bed, user, pair):
    for client in pair:
        assert client.login(user).ok()["expires_in"] == 900
    configure(bed.rt, auth_access_token_ttl_secs=60)
    for client in pair:
        eventually(lambda c=client: c.login(user).ok()["expires_in"] == 60, "the new value", 5)
