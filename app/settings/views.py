"""/admin/config."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from flask import Blueprint
from marshmallow import fields

from app.core.access import ConfirmationRequired, Operator, Scope
from app.crypto.secret_box import REDACTED
from app.settings import catalogue, changes, errors, keys, service, upkeep
from app.settings.schemas import (
    ChangedSettingsData,
    ChangeSettingsSchema,
    DraftSettingsSchema,
    ForceQuery,
    ImportSettingsSchema,
    SetSettingSchema,
    SettingSchemaItem,
    SettingsExportData,
    SettingsVerdictData,
    SystemConfigData,
)
from app.settings.upkeep import Setting
from app.store.paging import Page, Paging, part_of
from app.web import lockout
from app.web.guards import admin_may_read, admin_required, require_confirmation
from app.web.operation import answers, ok
from app.web.paging import PageQuery, page_of
from app.web.request import json_body, query_args
from app.web.runtime import runtime

bp = Blueprint("settings", __name__, url_prefix="/api/v1/admin/config")

CHANGE_ERRORS = (*errors.CHANGE, lockout.WouldLockOut, ConfirmationRequired)


@bp.get("")
@admin_may_read()
@query_args(PageQuery)
@answers(page_of(SystemConfigData), name="adminListSettings")
def list_settings(page: Paging) -> Page:
    """List the settings, set or not, with the values in force."""
    return part_of(upkeep.list_all(runtime()), page)


@bp.get("/schema")
@admin_may_read()
@answers(fields.List(fields.Nested(SettingSchemaItem)), name="adminDescribeSettings")
def describe() -> list[dict[str, Any]]:
    """Say what every setting means and takes."""
    return [
        catalogue.described(one.key) | {"default": one.default_with_text}
        for one in upkeep.list_unset(runtime())
    ]


@bp.get("/export")
@admin_required(opened_by=Scope.ADMIN_READ)
@answers(SettingsExportData(), name="adminExportSettings")
def export(by: Operator) -> Any:
    """Return what is set, by name, without secrets, as an import takes it; this is recorded."""
    return ok(upkeep.export_for(runtime(), by))


@bp.get("/<key>")
@admin_may_read()
@answers(SystemConfigData(), errors=(errors.SettingUnknown,), name="adminGetSetting")
def show(key: str) -> Setting:
    """Return a setting with the value in force."""
    return upkeep.find(runtime(), key)


@bp.put("/<key>")
@admin_required()
@query_args(ForceQuery)
@json_body(SetSettingSchema)
@answers(SystemConfigData(), errors=CHANGE_ERRORS, name="adminSetSetting")
def set_value(by: Operator, key: str, value: Any, is_forced: bool) -> Setting:
    """Set a setting; the placeholder of a secret leaves that as it is."""
    service.find_key(key)
    _change(by, {key: value}, is_forced=is_forced)
    return upkeep.find(runtime(), key)


@bp.patch("")
@admin_required()
@query_args(ForceQuery)
@json_body(ChangeSettingsSchema)
@answers(
    ChangedSettingsData(),
    errors=(*CHANGE_ERRORS, errors.SettingsChanged),
    name="adminChangeSettings",
)
def change(by: Operator, is_forced: bool, **draft: Any) -> dict[str, Any]:
    """Set settings and return others to their defaults: all of them, or none."""
    return _change(by, **draft, is_forced=is_forced)


@bp.post("/validate")
@admin_may_read(opened_by=None)
@json_body(DraftSettingsSchema)
@answers(SettingsVerdictData(), name="adminValidateSettings")
def validate(values: dict[str, Any], unset: list[str]) -> dict[str, Any]:
    """Say what would be wrong with a change, without making it; an empty one, with what is set."""
    return _verdict(values, unset)


@bp.post("/import")
@admin_required()
@query_args(ForceQuery)
@json_body(ImportSettingsSchema)
@answers(ChangedSettingsData(), errors=CHANGE_ERRORS, name="adminImportSettings")
def import_settings(by: Operator, is_forced: bool, **draft: Any) -> dict[str, Any]:
    """Set what an export answered: all of it, or nothing."""
    return _change(by, **draft, is_forced=is_forced)


@bp.delete("/<key>")
@admin_required()
@answers(errors=(errors.SettingUndeletable, errors.SettingUnknown), name="adminRemoveSetting")
def remove(by: Operator, key: str) -> None:
    """Remove what another version has stored; a setting of this one is refused."""
    changes.remove_unknown(runtime(), by, key)


def _change(
    by: Operator,
    values: Mapping[str, Any],
    unset: list[str] | None = None,
    *,
    is_forced: bool,
    expected_updated_at: datetime | None = None,
) -> dict[str, Any]:
    rt, unset = runtime(), unset or []
    values = _without_placeholders(values)
    if catalogue.GUARDED & {*values, *unset}:
        require_confirmation(by)
    approve = None if is_forced else partial(lockout.require_way_back, by)
    state = {"expected_updated_at": expected_updated_at}
    changed = changes.change(rt, by, values, unset, approve=approve, **state)
    shown = {setting.key.name: setting for setting in upkeep.list_all(rt)}
    return {"changed": [shown[name] for name in changed.names], "also_changed": changed.others}


def _verdict(values: Mapping[str, Any], unset: list[str]) -> dict[str, Any]:
    if values or unset:
        verdict = changes.check(runtime(), _without_placeholders(values), unset)
        problems, others = list(verdict.problems.items()), verdict.others
    else:
        problems, others = upkeep.problems(runtime()), []
    told = [{"key": key, "problem": problem} for key, problem in problems]
    return {"valid": not told, "problems": told, "also_changed": others}


def _without_placeholders(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the secrets that a page sends back as it was shown them."""
    return {
        name: value
        for name, value in values.items()
        if not (value == REDACTED and name in keys.ALL and keys.ALL[name].is_sensitive)
    }
