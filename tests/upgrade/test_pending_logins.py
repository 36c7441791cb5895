"""A sign-in that the present version began is finished by an instance of 0.1 or 0.2."""

from app.mfa import service as mfa
from tests.support.challenge import give_totp, start_login


def test_a_pending_login_has_exactly_the_members_that_older_versions_know(rt, api, user):
    give_totp(rt, user)
    stored = mfa.pending_logins(rt).find(start_login(api, user)).data
    known = {"flow_id", "user_id", "account", "session_version", "first_factor", "client"}
    assert set(stored) == known
    assert set(stored["client"]) == {"address", "user_agent"}
