"""Request bodies and payloads of a login."""

from marshmallow import fields, validate

from app.crypto.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.login.completion import LoginOutcome, LoginStatus, MfaRequired
from app.mfa.models import MfaMethod
from app.web.schema import (
    MAX_INPUT_LENGTH,
    Answer,
    RequestSchema,
    StrictBoolean,
    Word,
    example_metadata,
    text,
)

FLOW_TOKEN = "mfa_0f9d3c5be2a14876b1c0d4e8f7a69352"


REMEMBER = (
    "whether to stay signed in; with false, the cookies end with the browser's window, and the "
    "session after `auth_short_session_secs` without use"
)


def remember() -> StrictBoolean:
    """Return the member by which somebody who signs in says whether to stay signed in."""
    return StrictBoolean(load_default=True, metadata={"description": REMEMBER})


class LoginSchema(RequestSchema):
    """POST /auth/login."""

    identifier = text(MAX_INPUT_LENGTH)
    password = text(MAX_TYPED_PASSWORD_LENGTH)
    remember = remember()


class VerifyMfaChallengeSchema(RequestSchema):
    """POST /auth/mfa/challenge/verify."""

    flow_token = text(MAX_INPUT_LENGTH, example=FLOW_TOKEN)
    method = fields.Enum(MfaMethod, by_value=True, required=True)
    code = text(MAX_INPUT_LENGTH)
    remember = StrictBoolean(
        load_default=None,
        allow_none=False,
        metadata={"description": f"{REMEMBER}; by default as the first step said"},
    )
    remember_device = StrictBoolean(
        load_default=False,
        metadata={
            "description": "whether this browser is not to be asked for the second step for "
            "`remember_device_secs`; ignored where that is 0, and with `remember` false"
        },
    )


class SendMfaEmailCodeSchema(RequestSchema):
    """POST /auth/mfa/challenge/email-code/send."""

    flow_token = text(MAX_INPUT_LENGTH, example=FLOW_TOKEN)


class SignedInData(Answer):
    """A session, set as cookies; `expires_in` is the lifetime of the access token in seconds.

    With `password_change_required` it is good for changing the password only.
    """

    status = fields.String(
        validate=validate.OneOf([LoginStatus.AUTHENTICATED, LoginStatus.PASSWORD_CHANGE_REQUIRED]),
    )
    expires_in = fields.Integer(attribute="pair.access_seconds")


class MfaRequiredData(Answer):
    """No session and no cookies yet: the login waits `expires_in` seconds for a second factor."""

    status = fields.String(validate=validate.OneOf([LoginStatus.MFA_REQUIRED]))
    flow_token = fields.String(metadata=example_metadata(FLOW_TOKEN))
    expires_in = fields.Integer(metadata=example_metadata(300))
    methods = fields.List(Word(MfaMethod))
    remember_device_secs = fields.Integer(
        attribute="remember_device_seconds",
        metadata={
            "description": "for how long the browser can be remembered; 0 if it cannot",
            **example_metadata(2_592_000),
        },
    )


class EmailCodeSentData(Answer):
    """How long the code is valid, and when another one can be sent, in seconds."""

    expires_in = fields.Integer(metadata=example_metadata(300))
    resend_after = fields.Integer()


LOGIN_STEP = {LoginOutcome: SignedInData(), MfaRequired: MfaRequiredData()}
