"""/auth/passkeys."""

from collections.abc import Sequence
from typing import Any

from flask import Blueprint
from marshmallow import fields

from app.core.access import Principal
from app.login.completion import LoginOutcome, MfaRequired
from app.login.errors import LastWayIn
from app.login.schemas import SignedInData
from app.passkeys import errors, login, management, schemas
from app.passkeys.management import Signal
from app.passkeys.models import Passkey
from app.passkeys.relying_party import StartedCeremony
from app.passkeys.schemas import PasskeyData
from app.web import cookies
from app.web.guards import anonymous_route, login_required
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("passkeys", __name__, url_prefix="/api/v1/auth/passkeys")


@bp.post("/login/start")
@anonymous_route(source_check=True)
@json_body(schemas.StartPasskeyLoginSchema)
@answers(schemas.StartedPasskeyLoginData(), errors=errors.START_LOGIN, name="startPasskeyLogin")
def start_login(identifier: str | None, conditional: bool | None) -> StartedCeremony:
    """Begin to sign in with a passkey.

    Pass `public_key` to `navigator.credentials.get`. The answer reveals nothing about accounts.
    """
    return login.start(runtime(), identifier=identifier, conditional=conditional)


@bp.post("/login/finish")
@anonymous_route(source_check=True)
@json_body(schemas.FinishPasskeyLoginSchema)
@answers(SignedInData(), errors=errors.FINISH_LOGIN, name="finishPasskeyLogin")
def finish_login(
    flow_id: str, credential: dict[str, Any], remember: bool
) -> LoginOutcome | MfaRequired:
    """Sign in with what the authenticator signed; no second factor is required."""
    wish = cookies.wish(remember)
    outcome = login.finish(
        runtime(), flow_id=flow_id, credential=credential, client=client(), wish=wish
    )
    cookies.sign_in(outcome.pair)
    return outcome


@bp.get("")
@login_required()
@answers(fields.List(fields.Nested(PasskeyData)))
def list_passkeys(principal: Principal) -> Sequence[Passkey]:
    """List the passkeys of the account, the most recently used first.

    At most 500 are listed: the most recently used ones, and then the newest.
    """
    return management.list_passkeys(runtime(), principal.user_id)


@bp.get("/signal")
@login_required()
@answers(schemas.SignalData(), errors=errors.SITE, name="getPasskeySignal")
def show_signal(principal: Principal) -> Signal:
    """Show what pages tell the browser: which passkeys exist, and the names of the account.

    For `PublicKeyCredential.signalAllAcceptedCredentials` and `signalCurrentUserDetails` of
    WebAuthn Level 3, with which browsers and password managers hide passkeys that were removed, and
    show the account's present names.
    """
    return management.signal(runtime(), principal)


@bp.post("/register/start")
@login_required(confirmation="if_set")
@json_body(schemas.StartPasskeyRegistrationSchema)
@answers(
    schemas.StartedPasskeyRegistrationData(),
    errors=errors.START_REGISTRATION,
    name="startPasskeyRegistration",
)
def start_registration(principal: Principal, name: str | None) -> StartedCeremony:
    """Begin to register a passkey; pass `public_key` to `navigator.credentials.create`."""
    return management.start(runtime(), principal, name=name)


@bp.post("/register/finish")
@login_required()
@json_body(schemas.FinishPasskeyRegistrationSchema)
@answers(PasskeyData(), errors=errors.FINISH_REGISTRATION, name="finishPasskeyRegistration")
def finish_registration(
    principal: Principal, flow_id: str, credential: dict[str, Any], name: str | None
) -> Passkey:
    """Register the passkey that the authenticator created."""
    return management.finish(
        runtime(), principal, flow_id=flow_id, credential=credential, name=name, client=client()
    )


@bp.patch("/<passkey_id>")
@login_required()
@json_body(schemas.RenamePasskeySchema)
@answers(PasskeyData(), errors=(errors.PasskeyNotFound, *errors.NAME), name="renamePasskey")
def rename(principal: Principal, passkey_id: str, name: str) -> Passkey:
    """Give a passkey another name."""
    return management.rename(runtime(), principal, passkey_id, name=name, client=client())


@bp.delete("/<passkey_id>")
@login_required(confirmation="if_set")
@answers(errors=(errors.PasskeyNotFound, LastWayIn), name="removePasskey")
def remove(principal: Principal, passkey_id: str) -> None:
    """Remove a passkey, unless it is the only way to sign in."""
    management.remove(runtime(), principal, passkey_id, client=client())
