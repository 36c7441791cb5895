"""/auth/login and /auth/mfa/challenge."""

from dataclasses import asdict
from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from app.core.access import AccountDisabled
from app.core.secret_box import SecretUnreadable
from app.login import challenge, email_code, service
from app.login.errors import CredentialsFailed, PasswordLoginDisabled
from app.login.responses import login_response
from app.login.schemas import (
    EmailCodeSentData,
    LoginSchema,
    MfaRequiredData,
    SendMfaEmailCodeSchema,
    SignedInData,
    VerifyMfaChallengeSchema,
)
from app.mail.errors import MailDeliveryFailed, MailNotConfigured
from app.mfa.errors import (
    MfaAttemptsExceeded,
    MfaCodeInvalid,
    MfaEmailCodeExpired,
    MfaEmailCodeRequired,
    MfaFactorRequired,
    MfaFlowExpired,
    MfaFlowInvalid,
    MfaRecoveryCodeUsed,
)
from app.users.errors import PendingActivation
from app.web.anonymous import anonymous_route
from app.web.envelope import ok
from app.web.operation import answers
from app.web.padding import minimum_duration
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("login", __name__, url_prefix="/api/v1/auth")


@bp.post("/login")
@minimum_duration
@anonymous_route(source_check=True)
@json_body(LoginSchema)
@answers(
    SignedInData(),
    MfaRequiredData(),
    errors=(PasswordLoginDisabled, CredentialsFailed, AccountDisabled, PendingActivation),
    name="login",
)
def log_in(body: dict[str, Any]) -> ResponseReturnValue:
    """Sign in with username or e-mail address and password.

    An account with a second factor gets no cookies yet, but a `flow_token` for
    `/auth/mfa/challenge/verify`.
    """
    return login_response(service.log_in(runtime(), **body, client=client()))


@bp.post("/mfa/challenge/verify")
@anonymous_route(source_check=True)
@json_body(VerifyMfaChallengeSchema)
@answers(
    SignedInData(),
    errors=(
        MfaFlowInvalid,
        MfaFlowExpired,
        PasswordLoginDisabled,
        AccountDisabled,
        PendingActivation,
        MfaFactorRequired,
        MfaEmailCodeRequired,
        MfaEmailCodeExpired,
        MfaCodeInvalid,
        MfaRecoveryCodeUsed,
        MfaAttemptsExceeded,
        SecretUnreadable,
    ),
    name="verifyMfaChallenge",
)
def verify_challenge(body: dict[str, Any]) -> ResponseReturnValue:
    """Finish a login with a second factor.

    A login has five attempts. The fifth wrong code ends it, and so does a right one.
    """
    return login_response(challenge.verify(runtime(), **body, client=client()))


@bp.post("/mfa/challenge/email-code/send")
@anonymous_route(source_check=True)
@json_body(SendMfaEmailCodeSchema)
@answers(
    EmailCodeSentData(),
    errors=(
        MfaFlowInvalid,
        MailNotConfigured,
        MfaFlowExpired,
        AccountDisabled,
        PendingActivation,
        MfaFactorRequired,
        MailDeliveryFailed,
    ),
    name="sendMfaEmailCode",
)
def send_email_code(body: dict[str, Any]) -> ResponseReturnValue:
    """Send a code by e-mail, which voids any earlier one."""
    return ok(asdict(email_code.send(runtime(), **body, client=client())))
