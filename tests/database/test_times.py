"""How moments are stored: in UTC, whatever zone they came in."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.dialects import postgresql, sqlite

from app.store.db import UTCDateTime

pytestmark = pytest.mark.both_databases

EAST = timezone(timedelta(hours=2))
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DIALECTS = [sqlite.dialect(), postgresql.dialect()]


def stored(dialect, moment):
    return UTCDateTime().bind_processor(dialect)(moment)


def read(dialect, kept):
    return UTCDateTime().result_processor(dialect, None)(kept)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_moment_comes_back_in_utc(dialect):
    for moment in (NOON, NOON.astimezone(EAST), NOON.replace(microsecond=123_456)):
        back = read(dialect, stored(dialect, moment))
        assert (back, back.tzinfo) == (moment, UTC)
    assert read(dialect, stored(dialect, None)) is None


def test_texts_of_sqlite_sort_by_time():
    assert stored(DIALECTS[0], NOON) == "2026-03-02 12:00:00.000000"
    assert stored(DIALECTS[0], NOON.astimezone(EAST)) == "2026-03-02 12:00:00.000000"


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_moment_of_no_zone_is_refused(dialect):
    with pytest.raises(ValueError, match="naive"):
        stored(dialect, NOON.replace(tzinfo=None))
