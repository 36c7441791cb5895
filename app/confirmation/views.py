"""/auth/confirmation: before something dangerous, the owner confirms to be the owner."""

from typing import Any

from flask import Blueprint

from app.confirmation import errors, service
from app.confirmation.schemas import (
    ConfirmationData,
    ConfirmedData,
    ConfirmSchema,
    SentCodeData,
)
from app.confirmation.service import Confirmation, Method
from app.core.access import Principal
from app.mfa.email_codes import NewCode
from app.passkeys.relying_party import StartedCeremony
from app.passkeys.schemas import PasskeyProofSchema, StartedPasskeyLoginData
from app.web.guards import login_required
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("confirmation", __name__, url_prefix="/api/v1/auth/confirmation")


@bp.get("")
@login_required()
@answers(ConfirmationData(), name="getConfirmation")
def show(principal: Principal) -> Confirmation:
    """Show whether this session is confirmed, and how to confirm it."""
    return service.show(runtime(), principal)


@bp.post("")
@login_required()
@json_body(ConfirmSchema)
@answers(ConfirmedData(), errors=errors.CONFIRM, name="confirm")
def confirm(
    principal: Principal, method: str, password: str | None, code: str | None
) -> dict[str, Any]:
    """Confirm by the password, with a code if there is a second factor, or by a mailed code."""
    if method == Method.PASSWORD:
        lasts = service.by_password(
            runtime(), principal, password=password or "", code=code, client=client()
        )
    else:
        lasts = service.by_email_code(runtime(), principal, code=code or "", client=client())
    return {"expires_in": lasts}


@bp.post("/email-code/send")
@login_required()
@answers(SentCodeData(), errors=errors.SEND_CODE, name="sendConfirmationCode")
def send_code(principal: Principal) -> NewCode:
    """Mail a code to confirm with.

    It is for accounts that have neither a password nor a passkey to confirm with, and beside the
    password where the sign-in asks for a mailed code.
    """
    return service.send_code(runtime(), principal)


@bp.post("/passkey/start")
@login_required()
@answers(StartedPasskeyLoginData(), errors=errors.START_PASSKEY, name="startPasskeyConfirmation")
def start_passkey(principal: Principal) -> StartedCeremony:
    """Begin to confirm with a passkey of the account; user verification is required."""
    return service.start_passkey(runtime(), principal)


@bp.post("/passkey/finish")
@login_required()
@json_body(PasskeyProofSchema)
@answers(ConfirmedData(), errors=errors.FINISH_PASSKEY, name="finishPasskeyConfirmation")
def finish_passkey(
    principal: Principal, flow_id: str, credential: dict[str, Any]
) -> dict[str, Any]:
    """Confirm with what the authenticator signed."""
    lasts = service.by_passkey(
        runtime(), principal, flow_id=flow_id, credential=credential, client=client()
    )
    return {"expires_in": lasts}
