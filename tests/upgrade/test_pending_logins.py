"""A sign-in that the present version began is finished by an instance of the version before."""

from app.mfa import service as mfa
from tests.support.challenge import give_totp, start_login


def test_a_pending_login_has_only_members_that_the_version_before_knows(rt, api, user):
    give_totp(rt, user)
    stored = mfa.pending_logins(rt).find(start_login(api, user)).data
    assert set(stored) == {"flow_id", "user_id", "session_version", "first_factor", "client"}
    assert set(stored["client"]) == {"address", "user_agent"}
