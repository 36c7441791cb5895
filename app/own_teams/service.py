"""What a member may do with a team; how it is done is in `team_admin`.

Everybody in a team sees it and its members and may leave it. Its administrators also change its
name, add and remove members, restore it and read its log. Only owners archive it and decide who is
an owner.
"""

from collections.abc import Callable

from sqlalchemy.orm import Session

from app.core.access import Operator, Principal, SwitchedOff
from app.core.client import Client
from app.core.config import Bucket
from app.core.runtime import Runtime
from app.settings import keys
from app.team_admin import service as team_admin
from app.teams import queries
from app.teams import service as teams
from app.teams.models import OwnTeam, Team, TeamRole
from app.users import queries as users_queries
from app.users import service as users
from app.users.errors import UserNotFound
from app.users.models import Account, Role

# Every team has a quota of its own.
CREATED = Bucket(per_second=20 / 3600, burst=20)
# Whoever may add members learns who has an account, and the address of those who are added; each
# change of somebody else is mailed.
CHANGED = Bucket(per_second=60 / 3600, burst=60)

# Raises unless an account, by its id, may do something in the team with the id before it.
Rule = Callable[[Session, int, int], TeamRole]


def allowed(
    rt: Runtime, principal: Principal, client: Client, team_id: int, rule: Rule
) -> Operator:
    """Return a member as the one who changes a team, or refuse.

    The rule is checked again in the transaction of the change.
    Raises: TokenInvalid, AccountDisabled, and what the rule does.
    """

    def check(session: Session) -> None:
        users.require_still_active(session, principal)
        rule(session, team_id, principal.user_id)

    with rt.reading() as session:
        check(session)
    return Operator(principal, client, check, is_team_member=True)


def may_change(session: Session, team_id: int, user_id: int, member_id: int) -> TeamRole:
    """Like `teams.service.require_manager`; of an owner, only owners may change anything.

    Raises: TeamNotFound, NotYourTeam, TeamManagerRequired, TeamOwnerRequired.
    """
    member = queries.find_member(session, team_id, member_id)
    role = teams.require_manager(session, team_id, user_id)
    if member is not None and member.role == TeamRole.OWNER:
        return teams.require_owner(session, team_id, user_id)
    return role


def may_remove(session: Session, team_id: int, user_id: int, member_id: int) -> TeamRole:
    """Like `may_change`, but everybody may leave."""
    if user_id == member_id:
        return teams.require_member(session, team_id, user_id)
    return may_change(session, team_id, user_id, member_id)


def create(rt: Runtime, principal: Principal, client: Client, name: str, description: str) -> Team:
    """Create a team that the caller owns, with the default quota and policy group.

    Raises: SwitchedOff, TeamNameInvalid, RateLimited; TokenInvalid, AccountDisabled.
    """
    _require_creator(rt, principal.account)
    name = teams.checked_name(name)
    if rt.config.rate_limits:
        rt.limits.rates.take("own_teams", CREATED, str(principal.user_id))

    def check(session: Session) -> None:
        _require_creator(rt, users.require_still_active(session, principal))

    by = Operator(principal, client, check, is_team_member=True)
    return team_admin.create(rt, by, name, principal.user_id, description=description)


def add_member(
    rt: Runtime, by: Operator, team_id: int, who: tuple[int | None, str | None], role: TeamRole
) -> int:
    """Add the account with an id or an identifier to a team, and return its id.

    One that was never activated counts as none: its address may be a stranger's.
    Raises: errors.ADD_MEMBER, as far as `by` is allowed to.
    """
    limit_changes(rt, by)
    account_id = team_admin.account_id(rt, *who)
    with rt.reading() as session:
        if users.get(session, account_id).activated_at is None:
            raise UserNotFound
    team_admin.add_member(rt, by, team_id, account_id, role)
    return account_id


def limit_changes(rt: Runtime, by: Operator) -> None:
    """Take part of what one account may do to the members of its teams.

    Raises: RateLimited.
    """
    if rt.config.rate_limits:
        rt.limits.rates.take("team_members", CHANGED, str(by.user_id))


def get(rt: Runtime, team_id: int, user_id: int) -> OwnTeam:
    """Return a team as one of its members sees it.

    Raises: TeamNotFound, NotYourTeam.
    """
    with rt.reading() as session:
        team = teams.named(session, team_id)
        role = teams.require_member(session, team_id, user_id)
        maker = team.created_by
        creator = users_queries.find_account(session, maker) if maker is not None else None
    return OwnTeam(team, role, creator)


def _require_creator(rt: Runtime, account: Account) -> None:
    if account.role != Role.ADMIN and not rt.settings.get(keys.TEAMS_SELF_SERVICE):
        raise SwitchedOff
