"""Runs all tests of an xdist group in the same worker.

xdist itself appends the group to the test's id, which pytest 9.2 no longer lets it change. So the
workers write the groups to a file, where the scheduler looks them up.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling


def leave(run: str, items: list[pytest.Item]) -> None:
    """Write the group of each test that has one; every worker writes the same file."""
    found = {
        item.nodeid: mark.args[0] for item in items for mark in item.iter_markers("xdist_group")
    }
    with tempfile.NamedTemporaryFile("w", delete=False, dir=_file(run).parent) as draft:
        json.dump(found, draft)
    os.replace(draft.name, _file(run))


def _file(run: str) -> Path:
    return Path(tempfile.gettempdir(), f"gatehouse-test-groups-{run}.json")


class Groups(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped
    """Schedules a group as a whole, and every other test individually."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._groups: dict[str, str] = {}

    def schedule(self) -> None:
        """Read the groups, then start scheduling."""
        if not self._groups and self.collection_is_completed:
            run = self.config.pluginmanager.getplugin("dsession").nodemanager.testrunuid
            file = _file(run)
            self._groups = json.loads(file.read_text())
            file.unlink()
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._groups.get(nodeid, nodeid)
