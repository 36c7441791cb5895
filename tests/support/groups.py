"""Tests of one group run in one process of the suite.

xdist's own way is a suffix of the test's id, which pytest 9.2 does not let it change any more. So
the processes leave the groups in a file, and whoever hands out the tests looks there.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling


def leave(run: str, items: list[pytest.Item]) -> None:
    """Write the group of each test that has one; every process writes the same."""
    found = {
        item.nodeid: mark.args[0] for item in items for mark in item.iter_markers("xdist_group")
    }
    with tempfile.NamedTemporaryFile("w", delete=False, dir=_file(run).parent) as draft:
        json.dump(found, draft)
    os.replace(draft.name, _file(run))


def _file(run: str) -> Path:
    return Path(tempfile.gettempdir(), f"gatehouse-test-groups-{run}.json")


class Groups(LoadScopeScheduling):
    """Hands out a group as a whole, and every other test by itself."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._groups: dict[str, str] = {}

    def schedule(self) -> None:
        """Look the groups up, and begin."""
        if not self._groups and self.collection_is_completed:
            run = self.config.pluginmanager.getplugin("dsession").nodemanager.testrunuid
            file = _file(run)
            self._groups = json.loads(file.read_text())
            file.unlink()
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._groups.get(nodeid, nodeid)
