"""What holds for every change of teams, storage and providers: who made it, and no secret."""

import json

import pytest

from app.access_tokens import queries as tokens
from app.core.access import (
    COMMAND_LINE,
    AdminRequired,
    Operator,
    Principal,
    Scope,
    TokenInvalid,
)
from app.core.client import Client
from app.crypto.tokens import digest
from app.external_auth.providers import service as providers
from app.external_auth.providers import testing
from app.sessions.service import require_still_admin
from app.storage_policies import groups, service
from app.storage_policies.service import bootstrap
from app.team_admin import service as teams
from app.teams.errors import LastTeamOwner
from app.teams.models import TeamRole
from tests.support.factories import account_of, audit_rows, change_user, make_user
from tests.support.programs import add_token

SECRET = "planted-secret-4711"
AGENT = "Boss/1.0"
HUB = {"kind": "github", "display_name": "Hub", "client_id": "files"}


@pytest.fixture
def there(rt, user):
    """One of each thing; their ids are 1 but for the group that nobody has."""
    team = teams.create(rt, COMMAND_LINE, "Crew", user.username)
    gone = teams.create(rt, COMMAND_LINE, "Gone", user.username)
    teams.archive(rt, COMMAND_LINE, gone.id)
    group = groups.create(rt, COMMAND_LINE, "Fast", groups.in_order([1]))
    provider = providers.add(rt, COMMAND_LINE, key="hub", **HUB)
    return {"team": team.id, "gone": gone.id, "group": group.id, "provider": provider.id}


def use_cases(rt, by, there, user):
    """Yield every change of these parts."""
    other = make_user(rt)
    team, group, provider = there["team"], there["group"], there["provider"]
    yield lambda: teams.create(rt, by, "New", user.id)
    yield lambda: teams.update(rt, by, team, name="Ship", policy_group=1)
    yield lambda: teams.add_member(rt, by, team, other.id, TeamRole.OWNER)
    yield lambda: teams.set_role(rt, by, team, user.id, TeamRole.MEMBER)
    yield lambda: teams.remove_member(rt, by, team, user.id)
    yield lambda: teams.archive(rt, by, team)
    yield lambda: teams.restore(rt, by, there["gone"])
    yield lambda: service.create_policy(rt, by, "Disk")
    yield lambda: groups.create(rt, by, "New", groups.in_order([1]))
    yield lambda: groups.update(rt, by, group, name="Slow")
    yield lambda: groups.delete(rt, by, group)
    yield lambda: providers.add(rt, by, key="another", client_secret=SECRET, **HUB)
    yield lambda: providers.update(rt, by, provider, client_secret=SECRET)
    yield lambda: testing.test(rt, by, provider)
    yield lambda: testing.test_draft(rt, by, "github", client_id="x", client_secret=SECRET)
    yield lambda: providers.remove(rt, by, provider, is_forced=False)


def operator(rt, admin):
    return operator_of(rt, Principal(account_of(rt, admin), "", 0, False, rt.clock.now()))


def operator_of(rt, caller):
    client = Client("192.0.2.7", AGENT)
    return Operator(caller, client, lambda session: require_still_admin(rt, session, caller))


def test_a_demotion_while_it_waited_stops_it(rt, admin, user, there):
    """As after the access check: the role goes away before the change has its locks."""
    by = operator(rt, admin)
    change_user(rt, admin, role="user")
    before = len(audit_rows(rt))
    for change in use_cases(rt, by, there, user):
        # The last owner's role and membership are refused first, which tells nothing new.
        with pytest.raises((AdminRequired, LastTeamOwner)):
            change()
    with pytest.raises(AdminRequired):
        bootstrap(rt, by)
    assert len(audit_rows(rt)) == before


def test_a_token_that_was_removed_while_it_waited_stops_it(rt, admin, user, there):
    text, token_id = add_token(rt, admin, Scope.ADMIN)
    by = operator_of(rt, tokens.find_program(rt.database, digest(text)))
    with rt.transaction() as session:
        tokens.remove(session, [token_id])
    before = len(audit_rows(rt))
    for change in use_cases(rt, by, there, user):
        with pytest.raises((TokenInvalid, LastTeamOwner)):
            change()
    with pytest.raises(TokenInvalid):
        bootstrap(rt, by)
    assert len(audit_rows(rt)) == before


def test_the_entry_of_each_says_who_from_where_and_no_secret(rt, admin, user, there):
    by = operator(rt, admin)
    for change in use_cases(rt, by, there, user):
        before = len(audit_rows(rt))
        change()
        [row] = audit_rows(rt)[before:]
        assert (row.user_id, row.ip_address, row.user_agent) == (admin.id, "192.0.2.7", AGENT)
        assert SECRET not in json.dumps(row._asdict(), default=str)
