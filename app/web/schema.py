"""The shared schema layer: one declaration validates a request and describes it."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from marshmallow import EXCLUDE, Schema, ValidationError, fields, missing, validate

from app.core.texts import is_storable

INT64 = 2**63
# Maximum length of a name, address, code or token in a request: far more than any has, so that one
# with the wrong format gets its own error and not that of a malformed body.
MAX_INPUT_LENGTH = 1024


class RequestSchema(Schema):
    """A JSON request body or query; members it does not know are ignored."""

    class Meta:
        """Marshmallow's settings."""

        unknown = EXCLUDE


class Answer(Schema):
    """What an answer says: each member is always there, but for those named as optional.

    So says the API description; nothing is checked when an answer is made.
    """

    optional: ClassVar[frozenset[str]] = frozenset()

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Note that a member without a default of its own is always there."""
        if field_name not in self.optional and field_obj.load_default is missing:
            field_obj.required = True


class MessageData(Answer):
    """A sentence for people, the same whatever the outcome."""

    message = fields.String()


class SentenceData(Answer):
    """An English sentence to be translated: `{name}` in the template stands for that value."""

    template = fields.String(metadata={"examples": ["PostgreSQL {version}."]})
    values_ = fields.Dict(
        keys=fields.String(), values=fields.String(), data_key="values", attribute="values"
    )


class Text(fields.String):
    """Text that every store can hold: no NUL, no unpaired surrogate."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError("must be a string")
        if not is_storable(value):
            raise ValidationError("must not contain NUL or unpaired surrogates")
        return value


class WholeNumber(fields.Integer):
    """A 64-bit JSON integer; neither a string nor a boolean nor a fraction.

    `2.0` is an integer (JSON Schema 2020-12, core §6.3).
    """

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValidationError("must be a whole number")
        if not -INT64 <= value < INT64:
            raise ValidationError("must fit in 64 bits")
        return value


class StrictBoolean(fields.Boolean):
    """A JSON boolean; strings and numbers are not converted."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> bool:
        if not isinstance(value, bool):
            raise ValidationError("must be true or false")
        return value


class Timestamp(fields.DateTime):
    """A moment, shown as RFC 3339 in UTC."""

    def _serialize(self, value: Any, *_: Any, **__: Any) -> str | None:
        return timestamp(value)


class Word(fields.Enum[Any]):
    """A member of an enumeration of texts, stored and dumped as its text."""

    def __init__(self, kind: type[StrEnum], **settings: Any) -> None:
        super().__init__(kind, by_value=True, **settings)

    def _serialize(self, value: Any, *_: Any, **__: Any) -> str | None:
        return None if value is None else str(value)


class Part(fields.Nested):
    """An object within the answer, whose members are those of the outer object."""

    def get_value(self, obj: Any, *_: Any, **__: Any) -> Any:
        """Return the outer object itself."""
        return obj


class Either(fields.Field[Any]):
    """An object of one of several shapes; for the API description only."""

    def __init__(self, *shapes: type[Schema], **settings: Any) -> None:
        super().__init__(**settings)
        self.shapes = shapes


def text(
    max_length: int, *, nullable: bool = False, example: str | None = None, **described: Any
) -> Text:
    """Return a field for text of at most `max_length` characters; a nullable one may be absent.

    `described` are members of its JSON Schema, for the API description only: a description, and
    rules that are checked later, as their breach has an error of its own.
    """
    length = validate.Length(max=max_length)
    metadata = {**(example_metadata(example) if example else {}), **described}
    if nullable:
        return Text(load_default=None, allow_none=True, validate=length, metadata=metadata)
    return Text(required=True, validate=length, metadata=metadata)


def always(value: Any, kind: str) -> fields.Constant[Any]:
    """Return a member that says the same in every answer; `kind` is its JSON type."""
    return fields.Constant(value, metadata={"type": kind})


def force(what: str) -> fields.Boolean:
    """Return the member `force` of a query; `what` describes what it does."""
    return fields.Boolean(load_default=False, data_key="force", metadata={"description": what})


def example_metadata(example: str | int) -> dict[str, Any]:
    """Return metadata with an example, for a field whose name does not suggest a typical value."""
    return {"examples": [example]}


def timestamp(moment: datetime | None) -> str | None:
    """Format as RFC 3339 in UTC with a trailing Z; None stays None."""
    if moment is None:
        return None
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat()[:-6]}Z"
