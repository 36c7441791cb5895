"""Deleting an account while something else is under way: one consistent end."""

import pytest

from app.core.access import COMMAND_LINE
from app.sessions.models import LoginSession
from app.team_admin import service as teams
from app.teams.models import TeamMember, TeamRole
from app.users.errors import UserNotFound
from tests.support.factories import (
    account_of,
    bearer_of,
    configure,
    count,
    make_user,
)
from tests.support.images import plain, upload
from tests.support.races import run_concurrently

pytestmark = pytest.mark.both_databases

PATH = "/auth/account"


@pytest.fixture
def leaving(rt, app, user):
    """A signed-in client of the account, each time it is called."""
    return lambda: bearer_of(rt, app, user)


def outcomes(*jobs):
    """Run the jobs at once; return the statuses of their answers, or the names of errors."""

    def run(job):
        try:
            return getattr(job(), "status", "done")
        except Exception as error:
            return type(error).__name__

    return run_concurrently([lambda job=job: run(job) for job in jobs])


def removal(client, user):
    return lambda: client.delete(PATH, {"confirm": user.username})


@pytest.mark.parametrize("attempt", range(2))
def test_of_two_deletions_one_finds_nothing_left(rt, leaving, user, attempt):
    jobs = [removal(leaving(), user) for _ in range(2)]
    assert sorted(outcomes(*jobs)) == [200, 401]


@pytest.mark.parametrize("attempt", range(2))
def test_a_sign_in_opens_no_session_of_a_deleted_account(rt, api, leaving, user, attempt):
    clients = [api.stranger() for _ in range(3)]
    removed, *signed_in = outcomes(
        removal(leaving(), user), *(lambda client=client: client.login(user) for client in clients)
    )
    assert removed == 200
    assert set(signed_in) <= {200, 401}
    assert count(rt, LoginSession, LoginSession.user_id == user.id) == 0
    for client in clients:
        client.me().fails(401, "auth.token_invalid" if client.cookies else "auth.token_missing")


@pytest.mark.parametrize("attempt", range(2))
def test_an_upload_leaves_no_file(rt, leaving, user, attempt):
    clients = [leaving(), leaving()]
    removed, *uploaded = outcomes(
        removal(leaving(), user),
        *(lambda client=client: upload(client, plain()) for client in clients),
    )
    assert removed == 200
    assert set(uploaded) <= {200, 401}
    files = [path for path in rt.config.avatar_dir.rglob("*") if path.is_file()]
    assert files == []


@pytest.mark.parametrize("attempt", range(2))
def test_a_team_keeps_an_owner_or_the_account_stays(rt, leaving, user, attempt):
    boss = make_user(rt, role="admin")
    team = teams.create(rt, COMMAND_LINE, "Crew", boss.username)
    teams.add_member(rt, COMMAND_LINE, str(team.id), user.username, TeamRole.OWNER)
    client = leaving()
    removed, left = outcomes(
        removal(client, user),
        lambda: teams.remove_member(rt, COMMAND_LINE, str(team.id), boss.username),
    )
    owners = count(rt, TeamMember, TeamMember.team_id == team.id, TeamMember.role == "owner")
    assert owners == 1
    # Either the account went first, and the other owner could not leave, or the other way round.
    assert (removed, left) in {(200, "LastTeamOwner"), (409, "done")}


@pytest.mark.parametrize("attempt", range(2))
def test_a_change_of_the_account_comes_first_or_not_at_all(rt, leaving, user, attempt):
    configure(rt, public_site_url=["http://localhost"])
    change = leaving()
    removed, renamed, moved = outcomes(
        removal(leaving(), user),
        lambda: change.patch("/auth/profile", {"display_name": "Late"}),
        lambda: change.post("/auth/email/change", {"new_email": "late@example.com"}),
    )
    assert removed == 200
    assert {renamed, moved} <= {200, 401}
    with pytest.raises(UserNotFound):
        account_of(rt, user)
