"""Request bodies, queries and answers of /admin/users, and the lines of an import."""

import json
from typing import Any

from marshmallow import RAISE, ValidationError, fields, validate

from app.core.errors import BadRequest
from app.crypto.passwords import MAX_TYPED_PASSWORD_LENGTH
from app.external_auth.schemas import ExternalLinkItem
from app.mfa.models import MfaMethod
from app.mfa.schemas import MfaFactor
from app.passkeys.schemas import PasskeyData
from app.user_admin.many_accounts import BulkAction
from app.user_admin.queries import SORT_COLUMNS
from app.users.models import MAX_QUOTA_BYTES, Role, Standing, Status
from app.users.schemas import EMAIL_RULE, PASSWORD_RULE, USERNAME_RULE, ManagedUser
from app.web.paging import (
    Filter,
    Moment,
    NumberFilter,
    PageQuery,
    sort_by,
    sort_order,
)
from app.web.request import all_complaints
from app.web.schema import (
    MAX_INPUT_LENGTH,
    Answer,
    RequestSchema,
    StrictBoolean,
    Timestamp,
    WholeNumber,
    Word,
    force,
    text,
)

MAX_BULK = 200


class UserListQuery(PageQuery):
    """GET /admin/users."""

    keyword = Filter("part of a username, address or display name; an id")
    role = fields.Enum(Role, by_value=True, load_default=None)
    standing = fields.Enum(
        Standing,
        by_value=True,
        load_default=None,
        data_key="status",
        metadata={"description": "`active` includes accounts that are not activated yet"},
    )
    policy_group_id = NumberFilter()
    has_second_factor = fields.Boolean(load_default=None)
    created_after = Moment("inclusive", load_default=None)
    created_before = Moment("exclusive", load_default=None)
    sort_by = sort_by(tuple(SORT_COLUMNS), "created_at")
    sort_order = sort_order()


class CreateUserSchema(RequestSchema):
    """POST /admin/users; without a password, one is generated."""

    username = text(MAX_INPUT_LENGTH, **USERNAME_RULE)
    email = text(MAX_INPUT_LENGTH, **EMAIL_RULE)
    password = text(MAX_TYPED_PASSWORD_LENGTH, nullable=True, **PASSWORD_RULE)
    must_change_password = StrictBoolean(load_default=False)
    role = fields.Enum(Role, by_value=True, load_default=Role.USER)
    storage_quota = WholeNumber(
        validate=validate.Range(0, MAX_QUOTA_BYTES), load_default=None, allow_none=False
    )
    policy_group_id = WholeNumber(validate=validate.Range(1), load_default=None, allow_none=False)


class UpdateUserSchema(RequestSchema):
    """PATCH /admin/users/{id}; absent members are left as they are."""

    email_verified = StrictBoolean()
    role = fields.Enum(Role, by_value=True)
    status = fields.Enum(Status, by_value=True)
    must_change_password = StrictBoolean()
    storage_quota = WholeNumber(validate=validate.Range(0, MAX_QUOTA_BYTES))
    policy_group = WholeNumber(validate=validate.Range(1), data_key="policy_group_id")
    expected_updated_at = Moment("refuse the change if the account is not of this time")


class SetEmailSchema(RequestSchema):
    """PUT /admin/users/{id}/email."""

    email = text(MAX_INPUT_LENGTH, **EMAIL_RULE)
    is_verified = StrictBoolean(load_default=False, data_key="verified")


class SetPasswordSchema(RequestSchema):
    """PUT /admin/users/{id}/password; without a password, one is generated."""

    password = text(MAX_TYPED_PASSWORD_LENGTH, nullable=True, **PASSWORD_RULE)
    must_change_password = StrictBoolean(load_default=False)


class ChangeManySchema(RequestSchema):
    """POST /admin/users/bulk; `policy_group_id` belongs to `assign_group`."""

    ids = fields.List(
        WholeNumber(validate=validate.Range(1)),
        required=True,
        validate=validate.Length(1, MAX_BULK),
    )
    action = fields.Enum(BulkAction, by_value=True, required=True)
    policy_group_id = WholeNumber(validate=validate.Range(1), load_default=None, allow_none=False)


class RefusedAccount(Answer):
    """An account that was left as it is, and why."""

    id = fields.Integer()
    code = fields.String(attribute="error.code", metadata={"description": "one of `ErrorCode`"})
    msg = fields.String(attribute="error.public_message")


class ChangedManyData(Answer):
    """The accounts that are now as wanted, and those that were refused."""

    done = fields.List(fields.Integer())
    refused = fields.List(fields.Nested(RefusedAccount))


class SetPasswordData(Answer):
    """The generated password is shown only here, and only if one was generated."""

    optional = frozenset({"generated_password"})

    generated_password = fields.String()


class RemovedFactorsData(Answer):
    """How many second factors the account had."""

    removed_factors = fields.Integer()


class RemoveCredentialQuery(RequestSchema):
    """DELETE of a passkey or an external link."""

    is_forced = force("remove it even if it is the only way to sign in")


class CredentialsData(Answer):
    """What an account signs in with.

    `second_factor` lists what a login would ask for. The failed attempts are those from the network
    with the most; null while Redis is away.
    """

    has_password = fields.Boolean()
    second_factor = fields.List(Word(MfaMethod))
    factors = fields.List(fields.Nested(MfaFactor))
    recovery_codes_remaining = fields.Integer()
    passkeys = fields.List(fields.Nested(PasskeyData))
    external_links = fields.List(fields.Nested(ExternalLinkItem))
    live_sessions = fields.Integer()
    last_sign_in_at = Timestamp(allow_none=True)
    failed_attempts = fields.Integer(allow_none=True)
    locked_until = Timestamp(allow_none=True)


class DeleteUserQuery(RequestSchema):
    """DELETE /admin/users/{id}."""

    confirm = Filter("the username, as a check on the id; may be absent")


class CreatedUserData(Answer):
    """A new account; the generated password is shown only here, and only if one was generated."""

    optional = frozenset({"generated_password"})

    user = fields.Nested(ManagedUser)
    generated_password = fields.String()


class FirebaseParametersSchema(RequestSchema):
    """What Firebase's scrypt needs besides the hash: the account's salt, the project's four."""

    class Meta:
        """Marshmallow's settings."""

        unknown = RAISE

    salt = text(MAX_INPUT_LENGTH)
    signer_key = text(MAX_INPUT_LENGTH)
    salt_separator = text(MAX_INPUT_LENGTH)
    rounds = WholeNumber(required=True, validate=validate.Range(1, 1000))
    mem_cost = WholeNumber(required=True, validate=validate.Range(1, 31))


class ImportedAccountSchema(RequestSchema):
    """A line of `flask users import`; a misspelt member must not cost an account its password."""

    class Meta:
        """Marshmallow's settings."""

        unknown = RAISE

    name = text(MAX_INPUT_LENGTH)
    address = text(MAX_INPUT_LENGTH)
    verified = StrictBoolean(load_default=False)
    role = fields.Enum(Role, by_value=True, load_default=Role.USER)
    hash = text(MAX_INPUT_LENGTH, nullable=True)
    firebase = fields.Nested(FirebaseParametersSchema)


class ImportReport(Answer):
    """What `flask users import` did with the lines; `formats` are those of the created ones."""

    optional = frozenset({"refused"})

    created = fields.Integer()
    formats = fields.Dict(keys=fields.String(), values=fields.Integer())
    existing = fields.Integer()
    refused = fields.Function(
        lambda report: [
            {"line": line, "code": error.code, "msg": error.public_message}
            for line, error in sorted(report.refused.items())
        ]
    )


_imported = ImportedAccountSchema()


def read_imported(line: bytes) -> dict[str, Any]:
    """Return the members of a line of `flask users import`.

    Raises: BadRequest.
    """
    try:
        members: dict[str, Any] = _imported.load(json.loads(line))
    except ValidationError as error:
        raise BadRequest(f"{all_complaints(error)}.") from None
    except (ValueError, RecursionError):
        raise BadRequest("The line is not a JSON object.") from None
    return members
