"""gunicorn's settings for the bare route: the project's own, without the service's hooks."""

import gc
import runpy
from pathlib import Path
from typing import Any

_project = runpy.run_path(str(Path(__file__).resolve().parent.parent / "gunicorn.conf.py"))
# These need the runtime of the service.
_hooks = {"on_starting", "when_ready", "post_worker_init", "worker_exit", "on_exit"}
globals().update({k: value for k, value in _project.items() if k[0] != "_" and k not in _hooks})
wsgi_app = "bench.bare:app"


def when_ready(_server: Any) -> None:
    """Freeze the heap before forking, as the service does, so that workers share its memory."""
    gc.collect()
    gc.freeze()
