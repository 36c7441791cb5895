"""Request bodies and payloads of passkeys.

A credential's shape is only described here. It is checked after the flow is consumed, as the
specified order of refusals requires.
"""

from typing import Any

from marshmallow import ValidationError, fields, validate

from app.login.schemas import remember
from app.passkeys.ceremony import TYPE
from app.web.schema import (
    MAX_INPUT_LENGTH,
    Answer,
    RequestSchema,
    StrictBoolean,
    Timestamp,
    example_metadata,
    text,
)


def word(*words: str) -> fields.String:
    """Return a response field limited to these values, as in the browser's own WebAuthn types."""
    return fields.String(validate=validate.OneOf(words))


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


class CredentialProperties(Answer):
    """The output of the extension `credProps`."""

    optional = frozenset({"rk"})

    rk = fields.Boolean(allow_none=True)


class ClientExtensionResults(Answer):
    """The outputs of extensions; others are ignored."""

    optional = frozenset({"credProps"})

    credProps = fields.Nested(CredentialProperties, allow_none=True)  # noqa: N815 - WebAuthn's


class AttestationResponse(Answer):
    """What an authenticator made, binary values in base64url."""

    optional = frozenset({"transports"})

    clientDataJSON = fields.String()  # noqa: N815 - WebAuthn's
    attestationObject = fields.String()  # noqa: N815 - WebAuthn's
    transports = fields.List(fields.String(), allow_none=True)


class AssertionResponse(Answer):
    """What an authenticator signed, binary values in base64url."""

    optional = frozenset({"userHandle"})

    clientDataJSON = fields.String()  # noqa: N815 - WebAuthn's
    authenticatorData = fields.String()  # noqa: N815 - WebAuthn's
    signature = fields.String()
    userHandle = fields.String(allow_none=True)  # noqa: N815 - WebAuthn's


class CredentialJson(Answer):
    """A PublicKeyCredential as its `toJSON()` gives it."""

    optional = frozenset({"clientExtensionResults"})

    id = fields.String()
    rawId = fields.String()  # noqa: N815 - WebAuthn's
    type = word(TYPE)
    clientExtensionResults = fields.Nested(  # noqa: N815 - WebAuthn's
        ClientExtensionResults, allow_none=True
    )


class NewCredentialJson(CredentialJson):
    """A RegistrationResponseJSON of WebAuthn."""

    response = fields.Nested(AttestationResponse)


class ProofJson(CredentialJson):
    """An AuthenticationResponseJSON of WebAuthn."""

    response = fields.Nested(AssertionResponse)


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


class PasskeyProofSchema(RequestSchema):
    """What an authenticator signed for a flow."""

    flow_id = text(MAX_INPUT_LENGTH)
    credential = Credential(ProofJson, required=True)


class FinishPasskeyLoginSchema(PasskeyProofSchema):
    """POST /auth/passkeys/login/finish."""

    remember = remember()


class PasskeyData(Answer):
    """One passkey; `transports` is null when the client named none."""

    id = fields.Integer()
    credential_id = fields.String(metadata=example_metadata("AQIDBAUGBwg"))
    name = fields.String()
    transports = fields.List(fields.String(), allow_none=True, attribute="transport_names")
    backup_eligible = fields.Boolean()
    backed_up = fields.Boolean()
    sign_count = fields.Integer()
    created_at = Timestamp()
    updated_at = Timestamp()
    last_used_at = Timestamp(allow_none=True)


class SignalData(Answer):
    """What a browser is told of the account's passkeys; `user_id` is null if it has none."""

    rp_id = fields.String(metadata=example_metadata("files.example"))
    user_id = fields.String(allow_none=True, metadata=example_metadata("AQIDBAUGBwgJCgsMDQ4PEA"))
    name = fields.String(metadata=example_metadata("ada"))
    display_name = fields.String()
    accepted = fields.List(
        fields.String(),
        metadata={"description": "every credential id, in base64url"},
    )


class RelyingPartyData(Answer):
    """The site."""

    id = fields.String(metadata=example_metadata("files.example"))
    name = fields.String(metadata=example_metadata("Gatehouse"))


class UserEntity(Answer):
    """The account, under a random name that says nothing about it."""

    id = fields.String(metadata=example_metadata("AQIDBAUGBwgJCgsMDQ4PEA"))
    name = fields.String(metadata=example_metadata("ada"))
    displayName = fields.String()  # noqa: N815 - WebAuthn's


class KeyParameters(Answer):
    """A kind of key that is accepted."""

    type = word(TYPE)
    alg = fields.Integer()


class CredentialDescriptor(Answer):
    """A credential."""

    type = word(TYPE)
    id = fields.String()


class AuthenticatorSelection(Answer):
    """What the authenticator must be able to do."""

    residentKey = word("required")  # noqa: N815 - WebAuthn's
    requireResidentKey = fields.Boolean()  # noqa: N815 - WebAuthn's
    userVerification = word("required")  # noqa: N815 - WebAuthn's


class CreationOptions(Answer):
    """A PublicKeyCredentialCreationOptionsJSON of WebAuthn."""

    optional = frozenset({"excludeCredentials"})

    rp = fields.Nested(RelyingPartyData)
    user = fields.Nested(UserEntity)
    challenge = fields.String()
    pubKeyCredParams = fields.List(  # noqa: N815 - WebAuthn's
        fields.Nested(KeyParameters)
    )
    timeout = fields.Integer()
    excludeCredentials = fields.List(fields.Nested(CredentialDescriptor))  # noqa: N815 - WebAuthn's
    authenticatorSelection = fields.Nested(  # noqa: N815 - WebAuthn's
        AuthenticatorSelection
    )
    attestation = word("none")
    extensions = fields.Dict()


class RequestOptions(Answer):
    """A PublicKeyCredentialRequestOptionsJSON of WebAuthn."""

    challenge = fields.String()
    timeout = fields.Integer()
    rpId = fields.String()  # noqa: N815 - WebAuthn's
    allowCredentials = fields.List(  # noqa: N815 - WebAuthn's
        fields.Nested(CredentialDescriptor)
    )
    userVerification = word("required")  # noqa: N815 - WebAuthn's
    extensions = fields.Dict()


class CreationArgument(Answer):
    """What a page passes to `navigator.credentials.create`."""

    publicKey = fields.Nested(CreationOptions)  # noqa: N815 - WebAuthn's


class RequestArgument(Answer):
    """What a page passes to `navigator.credentials.get`; `mediation` only for conditional UI."""

    optional = frozenset({"mediation"})

    publicKey = fields.Nested(RequestOptions)  # noqa: N815 - WebAuthn's
    mediation = word("conditional")


class StartedPasskeyRegistrationData(Answer):
    """A registration that waits for its authenticator."""

    flow_id = fields.String()
    public_key = fields.Nested(CreationArgument)


class StartedPasskeyLoginData(Answer):
    """A sign-in that waits for its authenticator."""

    flow_id = fields.String()
    public_key = fields.Nested(RequestArgument)
