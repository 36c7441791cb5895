"""The launcher run for real: a private instance folder, a free port, its own Valkey."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.launcher import Service, eventually, is_gone


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path / "instance")
    yield service
    service.close()


@pytest.fixture(name="eventually")
def eventually_fixture() -> Callable[..., Any]:
    return eventually


@pytest.fixture
def all_gone() -> Callable[[list[psutil.Process]], None]:
    """Wait until every process of a list has ended."""
    return lambda processes: eventually(
        lambda: all(map(is_gone, processes)), f"the end of {processes}"
    )
