"""A stored list of the actions to record gets those that are new."""

import json

import pytest
import sqlalchemy as sa
from flask_migrate import downgrade, upgrade

from app.core.config import MIGRATIONS
from tests.support.factories import configure

pytestmark = pytest.mark.both_databases

NEW = [
    "user_confirm_identity",
    "admin_restore_team",
    "admin_export_audit_log",
    "admin_revoke_user_session",
    "admin_set_user_email",
    "admin_remove_user_passkey",
    "admin_remove_user_external_link",
    "admin_unlock_user",
    "admin_resend_invitation",
    "user_login_failed",
    "user_lock_account",
    "user_export_data",
    "user_delete_account",
    "team_create",
    "team_update",
    "team_archive",
    "team_restore",
    "team_member_add",
    "team_member_update",
    "team_member_remove",
    "user_token_create",
    "user_token_rename",
    "user_token_delete",
    "admin_create_user_token",
    "admin_remove_user_token",
    "user_mfa_device_remove",
]


@pytest.mark.parametrize("chosen", [["user_login"], ["admin_restore_team", "user_login"]])
def test_new_actions_are_recorded_where_a_list_is_stored(app, rt, chosen):
    configure(rt, audit_log_recorded_actions=chosen)
    with app.app_context():
        downgrade(str(MIGRATIONS), "0012")
        assert stored(rt) == ["user_login"]
        upgrade(str(MIGRATIONS))
    assert stored(rt) == ["user_login", *NEW]


def test_no_list_is_made_where_none_is_stored(app, rt):
    with app.app_context():
        downgrade(str(MIGRATIONS), "0012")
        upgrade(str(MIGRATIONS))
    assert stored(rt) is None


def stored(rt):
    listed = sa.text("SELECT value FROM system_config WHERE key = 'audit_log_recorded_actions'")
    with rt.reading() as session:
        text = session.scalar(listed)
    return text and json.loads(text)
