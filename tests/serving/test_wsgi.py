"""The module by which gunicorn and the `flask` command find the application."""

import gc
import os
import runpy

import pytest

from tests.support.servers import ROOT


@pytest.fixture
def application(tmp_path, monkeypatch):
    """What `wsgi.py` makes, in this process."""
    monkeypatch.setenv("GATEHOUSE_INSTANCE", str(tmp_path))
    umask = os.umask(0o022)
    try:
        found = runpy.run_path(str(ROOT / "wsgi.py"))["app"]
        yield found
        found.extensions["gatehouse"].close()
    finally:
        gc.unfreeze()
        os.umask(umask)


@pytest.mark.usefixtures("application")
def test_garbage_is_collected_but_not_among_what_was_imported():
    assert gc.isenabled()
    assert gc.get_freeze_count() > 100_000


@pytest.mark.usefixtures("application")
def test_what_the_process_writes_is_nobody_elses_to_read(tmp_path):
    (tmp_path / "file").touch()
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
