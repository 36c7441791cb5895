"""/auth/passkeys."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue
from marshmallow import fields

from app.core.access import AccountDisabled, Principal
from app.login.errors import LastWayIn
from app.login.schemas import SignedInData
from app.login.service import LoginOutcome, MfaRequired
from app.passkeys import login, management, registration, responses
from app.passkeys.errors import (
    CredentialMalformed,
    CredentialTaken,
    FlowInvalid,
    FlowOfAnotherAccount,
    PasskeyLoginDisabled,
    PasskeyNameInvalid,
    PasskeyNameTooLong,
    PasskeyNotDiscoverable,
    PasskeyNotFound,
    PasskeyRefused,
    PublicSiteUrlInvalid,
    PublicSiteUrlRequired,
)
from app.passkeys.schemas import (
    FinishPasskeyLoginSchema,
    FinishPasskeyRegistrationSchema,
    PasskeyData,
    RenamePasskeySchema,
    StartedPasskeyLoginData,
    StartedPasskeyRegistrationData,
    StartPasskeyLoginSchema,
    StartPasskeyRegistrationSchema,
)
from app.users.errors import PendingActivation
from app.web import cookies
from app.web.envelope import ok
from app.web.guards import anonymous_route, login_required
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

SITE_ERRORS = (PublicSiteUrlRequired, PublicSiteUrlInvalid)
NAME_ERRORS = (PasskeyNameTooLong, PasskeyNameInvalid)

bp = Blueprint("passkeys", __name__, url_prefix="/api/v1/auth/passkeys")


@bp.post("/login/start")
@anonymous_route(source_check=True)
@json_body(StartPasskeyLoginSchema)
@answers(
    StartedPasskeyLoginData(), errors=(PasskeyLoginDisabled, *SITE_ERRORS), name="startPasskeyLogin"
)
def start_login(body: dict[str, Any]) -> ResponseReturnValue:
    """Begin to sign in with a passkey.

    Pass `public_key` to `navigator.credentials.get`. The answer reveals nothing about accounts.
    """
    return ok(responses.started(login.start(runtime(), **body)))


@bp.post("/login/finish")
@anonymous_route(source_check=True)
@json_body(FinishPasskeyLoginSchema)
@answers(
    SignedInData(),
    errors=(
        PasskeyLoginDisabled,
        *SITE_ERRORS,
        FlowInvalid,
        CredentialMalformed,
        PasskeyRefused,
        AccountDisabled,
        PendingActivation,
    ),
    name="finishPasskeyLogin",
)
def finish_login(body: dict[str, Any]) -> LoginOutcome | MfaRequired:
    """Sign in with what the authenticator signed; no second factor is required."""
    outcome = login.finish(runtime(), **body, client=client())
    cookies.sign_in(outcome.pair)
    return outcome


@bp.get("")
@login_required()
@answers(fields.List(fields.Nested(PasskeyData)))
def list_passkeys(principal: Principal) -> ResponseReturnValue:
    """List the passkeys of the account, the most recently used first.

    At most 500 are listed: the most recently used ones, and then the newest.
    """
    found = management.list_passkeys(runtime(), principal.user_id)
    return ok([responses.passkey(listed) for listed in found])


@bp.post("/register/start")
@login_required()
@json_body(StartPasskeyRegistrationSchema)
@answers(
    StartedPasskeyRegistrationData(),
    errors=(*SITE_ERRORS, *NAME_ERRORS),
    name="startPasskeyRegistration",
)
def start_registration(principal: Principal, body: dict[str, Any]) -> ResponseReturnValue:
    """Begin to register a passkey; pass `public_key` to `navigator.credentials.create`."""
    return ok(responses.started(registration.start(runtime(), principal, **body)))


@bp.post("/register/finish")
@login_required()
@json_body(FinishPasskeyRegistrationSchema)
@answers(
    PasskeyData(),
    errors=(
        *SITE_ERRORS,
        FlowInvalid,
        FlowOfAnotherAccount,
        CredentialMalformed,
        PasskeyNotDiscoverable,
        PasskeyRefused,
        CredentialTaken,
        *NAME_ERRORS,
    ),
    name="finishPasskeyRegistration",
)
def finish_registration(principal: Principal, body: dict[str, Any]) -> ResponseReturnValue:
    """Register the passkey that the authenticator created."""
    made = registration.finish(runtime(), principal, **body, client=client())
    return ok(responses.passkey(made))


@bp.patch("/<passkey_id>")
@login_required()
@json_body(RenamePasskeySchema)
@answers(PasskeyData(), errors=(PasskeyNotFound, *NAME_ERRORS), name="renamePasskey")
def rename(principal: Principal, body: dict[str, Any], passkey_id: str) -> ResponseReturnValue:
    """Give a passkey another name."""
    renamed = management.rename(runtime(), principal, passkey_id, **body, client=client())
    return ok(responses.passkey(renamed))


@bp.delete("/<passkey_id>")
@login_required()
@answers(errors=(PasskeyNotFound, LastWayIn), name="removePasskey")
def remove(principal: Principal, passkey_id: str) -> ResponseReturnValue:
    """Remove a passkey, unless it is the only way to sign in."""
    management.remove(runtime(), principal, passkey_id, client=client())
    return ok()
