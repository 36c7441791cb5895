"""gunicorn's configuration, for `gunicorn wsgi:app` under bin/serve or on its own."""

# ruff: noqa: E402 - the standard library must be patched before anything imports from it
import gevent
from gevent import monkey

# Nothing reads the record of which greenlet spawned which: a kilobyte for every connection.
gevent.config.track_greenlet_tree = False
monkey.patch_all()
# Seconds between polls for new requests while thousands of streams become ready at once.
gevent.setswitchinterval(0.001)

from app.store import postgres

postgres.wait_cooperatively()

import gc
import logging
import os
import resource
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any

from app.core import folders, logs
from app.core.config import Config, ConfigError
from app.serving.launch import PREPARE_VARIABLE
from app.serving.parent_death import die_with_parent
from app.serving.worker import Log, Worker

try:
    _config = Config.from_env(os.environ)
    if PREPARE_VARIABLE not in os.environ:
        folders.require_instance(_config.instance)
except ConfigError as error:
    sys.stderr.write(f"{error}\n")
    sys.exit(2)
logs.configure(_config.log_format, _config.log_level)
if PREPARE_VARIABLE not in os.environ:  # otherwise bin/serve has already reported them
    for _complaint in _config.unknown_variables:
        logging.getLogger("gatehouse").warning(_complaint)

# Where the workers of this master keep their metrics: in memory, where there is a folder for that.
# They write through a mapping, and on a full disk that would kill them (SIGBUS).
_name = f"gatehouse-{os.getuid()}-{sha256(bytes(_config.instance)).hexdigest()[:16]}"
# Whoever else makes it first is left alone: makedirs refuses.
_places = (f"/dev/shm/{_name}", str(_config.instance / "metrics"))  # noqa: S108
# Emptied once per process: at a reload gunicorn reads this file again while workers write.
if os.environ.get("PROMETHEUS_MULTIPROC_DIR") not in _places:
    for _metrics in _places:
        shutil.rmtree(_metrics, ignore_errors=True)
        with suppress(OSError):  # no such folder, or somebody else's of this name
            os.makedirs(_metrics, mode=0o700)
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics
            break

# Shells and systemd usually set a low one, for programs that use select(); gevent does not.
_most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (_most_files, _most_files))

# Slightly longer than the connect timeout, whose own error says more.
DATABASE_SECONDS = 6.0

wsgi_app = "wsgi:app"
bind = _config.bind
backlog = 4096
workers = _config.workers
worker_class = Worker
# Leaves room for other requests beside the maximum number of event streams per worker.
worker_connections = max(10_000, _config.sse_per_worker + 2000)
preload_app = True

# Longer than the idle timeout of a proxy's pool (nginx: 60 s), so that the proxy closes first.
keepalive = 65
timeout = 60
graceful_timeout = 5
# By so much earlier a worker ends what is left, before the master would kill it: it looks once a
# second.
WORKER_MARGIN_SECONDS = 2

# A Referer of 10 kB is legal and must not be refused.
limit_request_line = 8190
limit_request_field_size = 16_384
# X_Forwarded_For must not be mistaken for X-Forwarded-For.
header_map = "drop"
# GATEHOUSE_TRUSTED_PROXIES alone decides which proxies are trusted; gunicorn itself trusts none.
# The last two are empty because it trusts any peer on a unix socket, whatever the first one says.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""

# The control socket's default path is the same for all services of a user.
control_socket_disable = True
logger_class = Log
# gunicorn's own messages go where those of the application go.
errorlog = None
logconfig_dict = logs.configuration(_config.log_format, _config.log_level)
# At DEBUG gunicorn would log every path, invitation tokens included.
loglevel = "info" if _config.log_level == "DEBUG" else _config.log_level.lower()
proc_name = "gatehouse"


def on_starting(server: Any) -> None:
    """Run `flask prepare` if bin/serve asks for it: a separate process would repeat all imports.

    A stop may safely kill it halfway: a migration is a single transaction.
    """
    application = server.app.wsgi()
    if os.environ.pop(PREPARE_VARIABLE, None) is None:
        _require_keys(application)
        return
    from app.commands import run

    exit_code = run(application, "prepare")
    application.extensions["gatehouse"].close()
    if exit_code:
        sys.exit(exit_code)


def _require_keys(application: Any) -> None:
    try:
        application.extensions["gatehouse"].keyring.require()
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)


def when_ready(server: Any) -> None:
    """Record the start, and prepare the memory that the workers about to be forked will share.

    Recording it also checks the tables' revision, so that no worker has to.
    """
    from app.operations import service as operations

    _record(server, operations.record_start, "start")
    # Otherwise the collector would write to shared pages and make each worker copy them.
    gc.collect()
    gc.freeze()


def post_fork(_server: Any, worker: Any) -> None:
    """Have a worker stop at once when its master is killed: the next one needs the address."""
    die_with_parent(worker.ppid)


def post_worker_init(worker: Any) -> None:
    """Start the application's background work in this worker."""
    os.umask(0o077)  # as in wsgi.py, whatever umask gunicorn used to bind a unix socket
    runtime = worker.app.wsgi().extensions["gatehouse"]
    runtime.start_background()
    worker.cfg.set("graceful_timeout", worker.cfg.graceful_timeout - WORKER_MARGIN_SECONDS)
    gevent.spawn(worker.watch_for_stop, runtime.begin_shutdown)


def pre_request(_worker: Any, request: Any) -> None:
    """Join the fields of a request's `Cookie` by semicolons (RFC 9113, section 8.2.3).

    gunicorn joins fields of the same name by commas, which belong to the value of a cookie.
    """
    cookies = [value for name, value in request.headers if name == "COOKIE"]
    if len(cookies) > 1:
        others = [field for field in request.headers if field[0] != "COOKIE"]
        request.headers = [*others, ("COOKIE", "; ".join(cookies))]


def worker_exit(_server: Any, worker: Any) -> None:
    """Close the worker's connections to the database and Redis."""
    if worker.booted:
        worker.app.wsgi().extensions["gatehouse"].close()


def on_exit(server: Any) -> None:
    """Record the stop, in the master, after the last worker has exited."""
    from app.operations import service as operations

    _record(server, operations.record_stop, "stop")


def _record(server: Any, record: Callable[[Any], None], what: str) -> None:
    """Write to the audit log, and leave no connection open for a worker to inherit.

    The database may hang, or a migration may hold a lock on the table: neither may keep the service
    from starting or stopping.
    """
    runtime = server.app.wsgi().extensions["gatehouse"]
    limit = gevent.Timeout(DATABASE_SECONDS)
    try:
        with limit:
            record(runtime)
    except gevent.Timeout as over:
        if over is not limit:
            raise
        logging.getLogger("gatehouse").warning(
            "the %s is not recorded: the database gave no answer in %g s", what, DATABASE_SECONDS
        )
    runtime.close()


def child_exit(_server: Any, worker: Any) -> None:
    """Clean up after a dead worker, however it died; runs in the master."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)
