"""POST /auth/check and the states of an installation."""

import pytest
import sqlalchemy as sa

from app.core.access import COMMAND_LINE
from app.storage_policies import service as storage
from app.storage_policies.models import StoragePolicy, StoragePolicyGroup, StoragePolicyGroupItem
from app.team_admin import service as teams
from app.teams import queries
from app.users.models import User
from tests.support.factories import change_user, configure, delete_user, make_user


def state(api):
    return api.post("/auth/check").ok()["setup_state"]


def change(rt, statement):
    with rt.transaction() as session:
        session.execute(statement)


def test_a_new_installation_needs_an_admin(api):
    assert api.post("/auth/check").ok() == {
        "setup_state": "needs_admin",
        "has_users": False,
        "allow_user_registration": True,
        "passkey_login_enabled": True,
        "password_login_enabled": True,
        "email_code_sign_in_enabled": False,
    }


@pytest.mark.both_databases
def test_set_up_leads_straight_to_ready(api):
    api.sign_up_admin().ok(201)
    assert api.post("/auth/check").ok()["has_users"] is True
    assert state(api) == "ready"


@pytest.mark.both_databases
@pytest.mark.usefixtures("without_storage_route")
def test_without_a_storage_route_set_up_leads_to_needs_storage(rt, api):
    assert state(api) == "needs_admin"
    assert api.sign_up_admin().ok(201)["policy_group_id"] is None
    assert state(api) == "needs_storage"
    storage.bootstrap(rt)
    assert state(api) == "ready"


@pytest.mark.usefixtures("without_storage_route")
def test_a_team_made_before_the_storage_route_gets_its_group(rt, api):
    api.sign_up_admin().ok(201)
    assert teams.create(rt, COMMAND_LINE, "Crew", "admin").policy_group_id is None
    route = storage.bootstrap(rt)
    with rt.reading() as session:
        [team] = queries.list_teams(session, archived=False)
    assert team.policy_group_id == route.group_id


def test_the_administrator_may_sign_in_while_storage_is_missing(rt, api, without_storage_route):
    api.sign_up_admin().ok(201)
    api.login("admin", "correct horse battery").ok()
    assert api.me().ok()["policy_group_id"] is None
    storage.bootstrap(rt)
    assert api.me().ok()["policy_group_id"] is not None


@pytest.mark.parametrize(
    "damage",
    [
        sa.update(StoragePolicy).values(is_default=False),
        sa.update(StoragePolicyGroup).values(is_default=False),
        sa.update(StoragePolicyGroup).values(is_enabled=False),
        sa.delete(StoragePolicyGroupItem),
        sa.update(User).where(User.role == "admin").values(policy_group_id=None),
        sa.update(User).where(User.role == "admin").values(policy_group_id=None, status="disabled"),
    ],
    ids=[
        "no default policy",
        "no default group",
        "group disabled",
        "group empty",
        "unassigned admin",
        "unassigned disabled admin",
    ],
)
def test_an_incomplete_route_leads_back_to_needs_storage(rt, api, admin, damage):
    assert state(api) == "ready"
    change(rt, damage)
    assert state(api) == "needs_storage"


def test_an_unassigned_ordinary_user_does_not_matter(rt, api, admin):
    user = make_user(rt)
    change_user(rt, user, policy_group_id=None)
    assert state(api) == "ready"


def test_users_without_any_admin_are_an_error_that_keeps_set_up_closed(rt, api, admin):
    make_user(rt)
    delete_user(rt, admin)
    api.post("/auth/check").fails(500, "internal_server_error")
    api.sign_up_admin().fails(400, "validation.system_already_initialized")


def test_the_answer_never_tells_about_an_account(rt, api, admin):
    before = api.post("/auth/check").ok()
    make_user(rt)
    assert api.post("/auth/check", {"identifier": admin.username}).ok() == before


def test_registration_is_announced_only_with_password_login(rt, api, admin):
    configure(rt, auth_password_login_enabled=False)
    answer = api.post("/auth/check").ok()
    assert answer["password_login_enabled"] is False
    assert answer["allow_user_registration"] is False


def test_the_switches_are_shown(rt, api, admin):
    configure(rt, auth_allow_user_registration=False, auth_passkey_login_enabled=False)
    answer = api.post("/auth/check").ok()
    assert answer["allow_user_registration"] is False
    assert answer["passkey_login_enabled"] is False
    assert answer["password_login_enabled"] is True
