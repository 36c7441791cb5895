"""Request bodies and payloads of passkeys.

A credential's shape is only described here. It is checked after the flow is consumed, as the
specified order of refusals requires.
"""

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from app.passkeys.ceremony import TYPE
from app.web.schema import (
    MAX_INPUT_LENGTH,
    RequestSchema,
    StrictBoolean,
    Timestamp,
    example_metadata,
    text,
)


def word(*words: str, required: bool = True) -> fields.String:
    """Return a response field limited to these values, as in the browser's own WebAuthn types."""
    return fields.String(required=required, validate=validate.OneOf(words))


class Name(fields.String):
    """Any text; the rules for names are checked later, in the specified order of refusals."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError("must be a text")
        return value


class Credential(fields.Nested):
    """An object that is described by a schema but not validated against it here."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError("must be an object")
        return value


class CredentialProperties(Schema):
    """The output of the extension `credProps`."""

    rk = fields.Boolean(allow_none=True)


class ClientExtensionResults(Schema):
    """The outputs of extensions; others are ignored."""

    credProps = fields.Nested(CredentialProperties, allow_none=True)  # noqa: N815 - WebAuthn's


class AttestationResponse(Schema):
    """What an authenticator made, binary values in base64url."""

    clientDataJSON = fields.String(required=True)  # noqa: N815 - WebAuthn's
    attestationObject = fields.String(required=True)  # noqa: N815 - WebAuthn's
    transports = fields.List(fields.String(), allow_none=True)


class AssertionResponse(Schema):
    """What an authenticator signed, binary values in base64url."""

    clientDataJSON = fields.String(required=True)  # noqa: N815 - WebAuthn's
    authenticatorData = fields.String(required=True)  # noqa: N815 - WebAuthn's
    signature = fields.String(required=True)
    userHandle = fields.String(allow_none=True)  # noqa: N815 - WebAuthn's


class CredentialJson(Schema):
    """A PublicKeyCredential as its `toJSON()` gives it."""

    id = fields.String(required=True)
    rawId = fields.String(required=True)  # noqa: N815 - WebAuthn's
    type = word(TYPE)
    clientExtensionResults = fields.Nested(  # noqa: N815 - WebAuthn's
        ClientExtensionResults, allow_none=True
    )


class NewCredentialJson(CredentialJson):
    """A RegistrationResponseJSON of WebAuthn."""

    response = fields.Nested(AttestationResponse, required=True)


class ProofJson(CredentialJson):
    """An AuthenticationResponseJSON of WebAuthn."""

    response = fields.Nested(AssertionResponse, required=True)


class StartPasskeyRegistrationSchema(RequestSchema):
    """POST /auth/passkeys/register/start."""

    name = Name(load_default=None, allow_none=True)


class FinishPasskeyRegistrationSchema(RequestSchema):
    """POST /auth/passkeys/register/finish."""

    flow_id = text(MAX_INPUT_LENGTH)
    credential = Credential(NewCredentialJson, required=True)
    name = Name(load_default=None, allow_none=True)


class RenamePasskeySchema(RequestSchema):
    """PATCH /auth/passkeys/{id}."""

    name = Name(required=True)


class StartPasskeyLoginSchema(RequestSchema):
    """POST /auth/passkeys/login/start."""

    identifier = text(MAX_INPUT_LENGTH, nullable=True)
    conditional = StrictBoolean(load_default=None, allow_none=True)


class FinishPasskeyLoginSchema(RequestSchema):
    """POST /auth/passkeys/login/finish."""

    flow_id = text(MAX_INPUT_LENGTH)
    credential = Credential(ProofJson, required=True)


class PasskeyData(Schema):
    """One passkey; `transports` is null when the client named none."""

    id = fields.Integer(required=True)
    credential_id = fields.String(required=True, metadata=example_metadata("AQIDBAUGBwg"))
    name = fields.String(required=True)
    transports = fields.List(
        fields.String(), required=True, allow_none=True, attribute="transport_names"
    )
    backup_eligible = fields.Boolean(required=True)
    backed_up = fields.Boolean(required=True)
    sign_count = fields.Integer(required=True)
    created_at = Timestamp(required=True)
    updated_at = Timestamp(required=True)
    last_used_at = Timestamp(required=True, allow_none=True)


class SignalData(Schema):
    """What a browser is told of the account's passkeys; `user_id` is null if it has none."""

    rp_id = fields.String(required=True, metadata=example_metadata("files.example"))
    user_id = fields.String(
        required=True, allow_none=True, metadata=example_metadata("AQIDBAUGBwgJCgsMDQ4PEA")
    )
    name = fields.String(required=True, metadata=example_metadata("ada"))
    display_name = fields.String(required=True)
    accepted = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "every credential id, in base64url"},
    )


class RelyingPartyData(Schema):
    """The site."""

    id = fields.String(required=True, metadata=example_metadata("files.example"))
    name = fields.String(required=True, metadata=example_metadata("Gatehouse"))


class UserEntity(Schema):
    """The account, under a random name that says nothing about it."""

    id = fields.String(required=True, metadata=example_metadata("AQIDBAUGBwgJCgsMDQ4PEA"))
    name = fields.String(required=True, metadata=example_metadata("ada"))
    displayName = fields.String(required=True)  # noqa: N815 - WebAuthn's


class KeyParameters(Schema):
    """A kind of key that is accepted."""

    type = word(TYPE)
    alg = fields.Integer(required=True)


class CredentialDescriptor(Schema):
    """A credential."""

    type = word(TYPE)
    id = fields.String(required=True)


class AuthenticatorSelection(Schema):
    """What the authenticator must be able to do."""

    residentKey = word("required")  # noqa: N815 - WebAuthn's
    requireResidentKey = fields.Boolean(required=True)  # noqa: N815 - WebAuthn's
    userVerification = word("required")  # noqa: N815 - WebAuthn's


class CreationOptions(Schema):
    """A PublicKeyCredentialCreationOptionsJSON of WebAuthn."""

    rp = fields.Nested(RelyingPartyData, required=True)
    user = fields.Nested(UserEntity, required=True)
    challenge = fields.String(required=True)
    pubKeyCredParams = fields.List(  # noqa: N815 - WebAuthn's
        fields.Nested(KeyParameters), required=True
    )
    timeout = fields.Integer(required=True)
    excludeCredentials = fields.List(fields.Nested(CredentialDescriptor))  # noqa: N815 - WebAuthn's
    authenticatorSelection = fields.Nested(  # noqa: N815 - WebAuthn's
        AuthenticatorSelection, required=True
    )
    attestation = word("none")
    extensions = fields.Dict(required=True)


class RequestOptions(Schema):
    """A PublicKeyCredentialRequestOptionsJSON of WebAuthn."""

    challenge = fields.String(required=True)
    timeout = fields.Integer(required=True)
    rpId = fields.String(required=True)  # noqa: N815 - WebAuthn's
    allowCredentials = fields.List(  # noqa: N815 - WebAuthn's
        fields.Nested(CredentialDescriptor), required=True
    )
    userVerification = word("required")  # noqa: N815 - WebAuthn's
    extensions = fields.Dict(required=True)


class CreationArgument(Schema):
    """What a page passes to `navigator.credentials.create`."""

    publicKey = fields.Nested(CreationOptions, required=True)  # noqa: N815 - WebAuthn's


class RequestArgument(Schema):
    """What a page passes to `navigator.credentials.get`; `mediation` only for conditional UI."""

    publicKey = fields.Nested(RequestOptions, required=True)  # noqa: N815 - WebAuthn's
    mediation = word("conditional", required=False)


class StartedPasskeyRegistrationData(Schema):
    """A registration that waits for its authenticator."""

    flow_id = fields.String(required=True)
    public_key = fields.Nested(CreationArgument, required=True)


class StartedPasskeyLoginData(Schema):
    """A sign-in that waits for its authenticator."""

    flow_id = fields.String(required=True)
    public_key = fields.Nested(RequestArgument, required=True)
