"""The test bed of deploy/: nginx, two instances, PostgreSQL and Valkey, started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.bed import bed as beds
from deploy.bed.proxy import find_nginx
from tests.support import leaks
from tests.support.factories import KnownUser, make_user
from tests.support.servers import NotStarted

HERE = Path(__file__).parent
NEEDS_BED = {"bed", "running_bed"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of the bed in one worker of the suite."""
    for item in items:
        if item.path.is_relative_to(HERE) and NEEDS_BED & set(item.fixturenames):  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.live)
            item.add_marker(pytest.mark.xdist_group("bed"))


@pytest.fixture(scope="session")
def running_bed() -> Iterator[beds.Bed]:
    try:
        find_nginx()
    except NotStarted as reason:
        pytest.skip(str(reason))
    with beds.running(LOG_LEVEL="INFO") as bed:
        yield bed
        logs = [instance.log for instance in bed.instances]
        assert leaks.watch.leaks_of(*logs, bed.proxy.access_log, bed.proxy.error_log) == []


@pytest.fixture
def bed(running_bed: beds.Bed) -> beds.Bed:
    """The bed, reset to have no accounts."""
    running_bed.reset()
    return running_bed


@pytest.fixture
def user(bed: beds.Bed) -> KnownUser:
    """An ordinary account beside an administrator."""
    make_user(bed.rt, username="root", role="admin")
    return make_user(bed.rt)
