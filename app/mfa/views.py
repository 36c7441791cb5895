"""/auth/mfa, except the login challenge."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue
from marshmallow import fields

from app.core.access import Principal
from app.core.secret_box import SecretUnreadable
from app.mfa import management, responses, totp_setup
from app.mfa.errors import (
    FactorNameTooLong,
    FactorNotFound,
    MfaCodeInvalid,
    MfaFactorAlreadyExists,
    MfaRecoveryCodeUsed,
    SetupInvalid,
    SetupOfAnotherAccount,
    TotpCodeMalformed,
)
from app.mfa.schemas import (
    FinishedTotpSetupData,
    FinishTotpSetupSchema,
    MfaData,
    RecoveryCode,
    SecondFactorProofSchema,
    StartedTotpSetupData,
)
from app.users.errors import PendingActivation
from app.web.envelope import ok
from app.web.guards import login_required
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

PROOF_ERRORS = (PendingActivation, MfaCodeInvalid, MfaRecoveryCodeUsed, SecretUnreadable)

bp = Blueprint("mfa", __name__, url_prefix="/api/v1/auth/mfa")


@bp.get("")
@login_required()
@answers(MfaData(), name="getMfa")
def show(principal: Principal) -> ResponseReturnValue:
    """Show the second factors of the account."""
    return ok(responses.mfa_data(management.list_factors(runtime(), principal.user_id)))


@bp.post("/totp/setup/start")
@login_required()
@answers(StartedTotpSetupData(), errors=(MfaFactorAlreadyExists,))
def start_totp_setup(principal: Principal) -> ResponseReturnValue:
    """Create a secret for an authenticator app; nothing changes until the setup is finished."""
    return ok(responses.started_setup(totp_setup.start(runtime(), principal.account)))


@bp.post("/totp/setup/finish")
@login_required()
@json_body(FinishTotpSetupSchema)
@answers(
    FinishedTotpSetupData(),
    errors=(
        FactorNameTooLong,
        PendingActivation,
        MfaFactorAlreadyExists,
        SetupInvalid,
        SetupOfAnotherAccount,
        TotpCodeMalformed,
        MfaCodeInvalid,
    ),
)
def finish_totp_setup(principal: Principal, body: dict[str, Any]) -> ResponseReturnValue:
    """Enable the authenticator app with its first code; the recovery codes are shown only now."""
    made = totp_setup.finish(runtime(), principal, **body, client=client())
    return ok(responses.enabled(made))


@bp.delete("/factors/<factor_id>")
@login_required()
@json_body(SecondFactorProofSchema)
@answers(errors=(*PROOF_ERRORS, FactorNotFound), name="removeMfaFactor")
def remove_factor(
    principal: Principal, body: dict[str, Any], factor_id: str
) -> ResponseReturnValue:
    """Remove a factor and all recovery codes; needs a code of the app or a recovery code."""
    management.remove_factor(runtime(), principal, factor_id, **body, client=client())
    return ok()


@bp.post("/recovery-codes/regenerate")
@login_required()
@json_body(SecondFactorProofSchema)
@answers(fields.List(RecoveryCode()), errors=PROOF_ERRORS)
def regenerate_recovery_codes(principal: Principal, body: dict[str, Any]) -> ResponseReturnValue:
    """Make ten new recovery codes and void the old ones; needs a code of the app or an old one."""
    codes = management.regenerate_recovery_codes(runtime(), principal, **body, client=client())
    return ok(codes)
