"""/auth/login and /auth/mfa/challenge."""

from flask import Blueprint

from app.login import errors, second_factor
from app.login import password as password_login
from app.login.completion import LoginOutcome, MfaRequired
from app.login.schemas import (
    LOGIN_STEP,
    EmailCodeSentData,
    LoginSchema,
    SendMfaEmailCodeSchema,
    SignedInData,
    VerifyMfaChallengeSchema,
)
from app.mfa.email_codes import NewCode
from app.mfa.models import MfaMethod
from app.web import cookies
from app.web.guards import anonymous_route, minimum_duration
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("login", __name__, url_prefix="/api/v1/auth")


@bp.post("/login")
@minimum_duration
@anonymous_route(source_check=True)
@json_body(LoginSchema)
@answers(LOGIN_STEP, errors=errors.LOGIN, name="login")
def log_in(identifier: str, password: str, remember: bool) -> LoginOutcome | MfaRequired:
    """Sign in with username or e-mail address and password.

    An account with a second factor gets no cookies yet, but a `flow_token` for
    `/auth/mfa/challenge/verify`; one that remembered this browser signs in at once.
    """
    outcome = password_login.log_in(
        runtime(),
        identifier=identifier,
        password=password,
        client=client(),
        wish=cookies.wish(remember),
    )
    cookies.sign_in(outcome.pair)
    return outcome


@bp.post("/mfa/challenge/verify")
@anonymous_route(source_check=True)
@json_body(VerifyMfaChallengeSchema)
@answers(SignedInData(), errors=errors.VERIFY, name="verifyMfaChallenge")
def verify_challenge(
    flow_token: str, method: MfaMethod, code: str, remember: bool | None, remember_device: bool
) -> LoginOutcome:
    """Finish a login with a second factor.

    A login has five attempts. The fifth wrong code ends it, and so does a right one.
    """
    outcome = second_factor.verify(
        runtime(),
        flow_token=flow_token,
        method=method,
        code=code,
        client=client(),
        wish=cookies.wish(remember, remember_device=remember_device),
    )
    cookies.sign_in(outcome.pair)
    return outcome


@bp.post("/mfa/challenge/email-code/send")
@anonymous_route(source_check=True)
@json_body(SendMfaEmailCodeSchema)
@answers(EmailCodeSentData(), errors=errors.SEND_CODE, name="sendMfaEmailCode")
def send_email_code(flow_token: str) -> NewCode:
    """Send a code by e-mail, which voids any earlier one."""
    return second_factor.send_email_code(runtime(), flow_token=flow_token, client=client())
