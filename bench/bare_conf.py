"""gunicorn's settings for the bare route: the project's own, without its hooks into the service."""

import runpy
from pathlib import Path

_project = runpy.run_path(str(Path(__file__).resolve().parent.parent / "gunicorn.conf.py"))
_hooks = {"post_worker_init", "worker_exit"}  # they reach for the service's runtime
globals().update(
    {name: value for name, value in _project.items() if name[0] != "_" and name not in _hooks}
)
wsgi_app = "bench.bare:app"
