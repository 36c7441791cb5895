"""/auth/mfa, except the login challenge."""

from flask import Blueprint
from marshmallow import fields

from app.core.access import Principal
from app.mfa import errors, management
from app.mfa.management import Enabled, SecondFactors, StartedSetup
from app.mfa.schemas import (
    FinishedTotpSetupData,
    FinishTotpSetupSchema,
    MfaData,
    RecoveryCode,
    SecondFactorProofSchema,
    StartedTotpSetupData,
)
from app.web.guards import login_required
from app.web.operation import answers
from app.web.peer import client
from app.web.request import json_body
from app.web.runtime import runtime

bp = Blueprint("mfa", __name__, url_prefix="/api/v1/auth/mfa")


@bp.get("")
@login_required()
@answers(MfaData(), name="getMfa")
def show(principal: Principal) -> SecondFactors:
    """Show the second factors of the account."""
    return management.show(runtime(), principal.user_id)


@bp.post("/totp/setup/start")
@login_required(confirmation="if_set")
@answers(StartedTotpSetupData(), errors=(errors.MfaFactorAlreadyExists,))
def start_totp_setup(principal: Principal) -> StartedSetup:
    """Create a secret for an authenticator app; nothing changes until the setup is finished."""
    return management.start_setup(runtime(), principal.account)


@bp.post("/totp/setup/finish")
@login_required()
@json_body(FinishTotpSetupSchema)
@answers(FinishedTotpSetupData(), errors=errors.FINISH_SETUP)
def finish_totp_setup(
    principal: Principal, flow_token: str, code: str, name: str | None
) -> Enabled:
    """Enable the authenticator app with its first code; the recovery codes are shown only now."""
    return management.finish_setup(
        runtime(), principal, flow_token=flow_token, code=code, name=name, client=client()
    )


@bp.delete("/factors/<factor_id>")
@login_required()
@json_body(SecondFactorProofSchema)
@answers(errors=(*errors.PROOF, errors.FactorNotFound), name="removeMfaFactor")
def remove_factor(principal: Principal, factor_id: str, code: str | None) -> None:
    """Remove a factor and all recovery codes; needs a code from the app or a recovery code."""
    management.remove_factor(runtime(), principal, factor_id, code=code, client=client())


@bp.post("/recovery-codes/regenerate")
@login_required()
@json_body(SecondFactorProofSchema)
@answers(fields.List(RecoveryCode()), errors=errors.PROOF)
def regenerate_recovery_codes(principal: Principal, code: str | None) -> list[str]:
    """Create ten recovery codes and void the old ones; needs a code from the app or an old one."""
    return management.regenerate_recovery_codes(runtime(), principal, code=code, client=client())
