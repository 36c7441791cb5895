"""/admin/overview, system-info, doctor, maintenance, keys and storage: the installation."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flask import Blueprint

import app
from app.core.access import Operator, Scope
from app.installation import cleanup, errors, preparation, schemas, secret_keys
from app.installation import doctor as doctors
from app.installation.machine_checks import Level
from app.installation.overview import overview as make_overview
from app.setup.queries import SetupState
from app.web.cli import FAILURES
from app.web.guards import admin_may_read, admin_required
from app.web.operation import answers
from app.web.request import query_args
from app.web.runtime import runtime

bp = Blueprint("admin_system", __name__, url_prefix="/api/v1/admin")

FROM_BEST = (Level.OK, Level.WARN, Level.FAIL)


@bp.get("/overview")
@admin_may_read()
@query_args(schemas.OverviewQuery)
@answers(schemas.OverviewData(), errors=(errors.ZoneUnknown,), name="adminGetOverview")
def overview(days: int, timezone: str, event_limit: int) -> dict[str, Any]:
    """Return numbers, health, what happened each day and what happened last.

    A zone's midnight inside an hour that is over counts that hour for the day in which it began.
    """
    return make_overview(runtime(), days, timezone, event_limit)


@bp.get("/system-info")
@admin_may_read()
@answers(schemas.SystemInfoData(), name="adminGetSystemInfo")
def system_info() -> dict[str, Any]:
    """Return which version runs."""
    written = Path(app.__file__).stat().st_mtime
    return {"version": app.__version__, "build_time": datetime.fromtimestamp(int(written), UTC)}


@bp.get("/doctor")
@admin_may_read(cost="outgoing")
@answers(schemas.DoctorData(), name="adminRunDoctor")
def doctor() -> dict[str, Any]:
    """Check everything the service depends on; what fails is in the answer.

    What computes or waits in a check does so in threads, processes and sockets that other requests
    do not wait for.
    """
    rt = runtime()
    found = doctors.examine(rt)
    return {
        "checked_at": rt.clock.now(),
        "worst": max((finding.level for finding in found.values()), key=FROM_BEST.index),
        "setup_state": _setup_state(),
        "checks": doctors.listed(found),
    }


@bp.post("/maintenance/cleanup")
@admin_required(opened_by=Scope.ADMIN)
@answers(schemas.CleanupData(), name="adminCleanUp")
def clean_up(by: Operator) -> dict[str, int]:
    """Delete what has expired, now; the service does so by itself as well."""
    return cleanup.clean_up_now(runtime(), by)


@bp.post("/storage/bootstrap")
@admin_required(opened_by=Scope.ADMIN)
@answers(schemas.StorageRouteData(), name="adminBootstrapStorage")
def bootstrap(by: Operator) -> dict[str, Any]:
    """Complete the default storage route, and assign everybody without a group.

    This finishes the set-up; doing it again changes nothing.
    """
    return preparation.bootstrap_storage(runtime(), by)


@bp.get("/keys")
@admin_may_read()
@answers(schemas.KeysData(), name="adminListKeys")
def list_keys() -> dict[str, Any]:
    """List the secret keys, the one that signs first; their values are never shown."""
    rt = runtime()
    use = secret_keys.key_use(rt)
    return {
        "source": "file" if rt.keyring.is_file else "environment",
        "unreadable_secrets": sum(use.secrets[key_id] for key_id in use.unusable_key_ids),
        "keys": secret_keys.list_keys(rt),
    }


@bp.post("/keys/rotate")
@admin_required(confirmation="always")
@answers(
    schemas.RotatedKeysData(),
    errors=(errors.KeysFromEnvironment, errors.RotationRunning),
    name="adminRotateKeys",
)
def rotate_keys(by: Operator) -> dict[str, Any]:
    """Sign and encrypt with a new key; what older keys made remains valid.

    It takes seconds, and waits for another rotation.
    """
    return secret_keys.rotate_keys(runtime(), by)


def _setup_state() -> SetupState | None:
    with suppress(*FAILURES):
        return preparation.setup_state(runtime())
    return None
