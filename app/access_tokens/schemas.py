"""Bodies and answers about access tokens."""

from typing import Any

from marshmallow import fields, validate

from app.access_tokens.models import MAX_NAME_LENGTH
from app.access_tokens.service import MAX_DAYS
from app.core.access import Scope
from app.web.schema import (
    MAX_INPUT_LENGTH,
    Answer,
    RequestSchema,
    Timestamp,
    WholeNumber,
    Word,
    example_metadata,
    text,
)

NAME_RULE: dict[str, Any] = {"maxLength": MAX_NAME_LENGTH}
PLENTY = 100


class CreateTokenSchema(RequestSchema):
    """POST /auth/tokens; `expires_in_days` may be null while the settings give no limit."""

    name = text(MAX_INPUT_LENGTH, example="Nightly backup", **NAME_RULE)
    scopes = fields.List(
        fields.Enum(Scope, by_value=True), required=True, validate=validate.Length(1, PLENTY)
    )
    days = WholeNumber(
        required=True,
        allow_none=True,
        data_key="expires_in_days",
        validate=validate.Range(1, MAX_DAYS),
    )


class RenameTokenSchema(RequestSchema):
    """PATCH /auth/tokens/{id}."""

    name = text(MAX_INPUT_LENGTH, example="Nightly backup", **NAME_RULE)


class TokenInfo(Answer):
    """An access token, without its secret part; `expires_at` is null if it never expires."""

    id = fields.Integer()
    name = fields.String(metadata=example_metadata("Nightly backup"))
    prefix = fields.String(metadata=example_metadata("gth_4fVu"))
    scopes = fields.List(Word(Scope))
    created_at = Timestamp()
    expires_at = Timestamp(allow_none=True)
    last_used_at = Timestamp(allow_none=True)
    last_used_ip = fields.String(allow_none=True)


class CreatedTokenData(Answer):
    """A new access token; `token` is shown only here."""

    token = fields.String(metadata=example_metadata("gth_..."))
    info = fields.Nested(TokenInfo)


class RemovedTokensData(Answer):
    """How many tokens were removed."""

    removed = fields.Integer()
