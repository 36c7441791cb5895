"""The query and the answer of every list that comes in pages."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load, pre_load, validate

from app.core.texts import is_storable
from app.store.paging import MAX_COUNTED, Paging
from app.web.schema import INT64, Answer, RequestSchema, Text

DEFAULT_LIMIT = 50
MAX_LIMIT = 100
MAX_SEARCH_LENGTH = 255


class Clamped(fields.Integer):
    """A whole number in a query; one out of bounds counts as the nearest bound."""

    def __init__(self, default: int, least: int, most: int) -> None:
        description = f"from {least} to {most}; one out of bounds counts as the nearest bound"
        super().__init__(load_default=default, metadata={"description": description})
        self.least, self.most = least, most

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        try:
            number = int(str(value))
        except ValueError:
            raise ValidationError("must be a whole number") from None
        return max(self.least, min(number, self.most))


class Filter(Text):
    """Text to filter by; blank means no filter."""

    def __init__(self, description: str | None = None) -> None:
        metadata = {"description": description} if description else {}
        super().__init__(load_default=None, metadata={**metadata, "maxLength": MAX_SEARCH_LENGTH})

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        text = str(value).strip()
        if not is_storable(text) or len(text) > MAX_SEARCH_LENGTH:
            raise ValidationError(f"must be text of at most {MAX_SEARCH_LENGTH} characters")
        return text or None


class Moment(fields.AwareDateTime):
    """A moment in a query or body, as RFC 3339; one without a zone is refused."""

    def __init__(self, description: str, **settings: Any) -> None:
        super().__init__(format="iso", metadata={"description": description}, **settings)

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> datetime:
        moment: datetime = super()._deserialize(value, *arguments, **options)
        try:
            return moment.astimezone(UTC)
        except OverflowError:
            raise ValidationError("must be within the years 1 to 9999") from None


class NumberFilter(fields.Integer):
    """A number to filter by, such as an id."""

    def __init__(self, description: str | None = None, least: int = 1) -> None:
        metadata = {"description": description} if description else {}
        bounds = validate.Range(least, INT64 - 1)
        super().__init__(load_default=None, validate=bounds, metadata=metadata)


class PageQuery(RequestSchema):
    """Which part of a list is asked for; loads as `page`, beside the filters of a subclass.

    A blank member counts as absent. A subclass that excludes limit and offset wants all.
    """

    limit = Clamped(DEFAULT_LIMIT, 1, MAX_LIMIT)
    offset = Clamped(0, 0, INT64 - 1)

    @pre_load
    def _without_blanks(self, members: Mapping[str, str], **_: Any) -> dict[str, str]:
        return {name: text for name, text in members.items() if text.strip()}

    @post_load
    def _gather(self, members: dict[str, Any], **_: Any) -> dict[str, Any]:
        sort_by, sort_order = members.pop("sort_by", "id"), members.pop("sort_order", "desc")
        part = members.pop("limit", INT64 - 1), members.pop("offset", 0)
        return {"page": Paging(*part, sort_by, sort_order == "desc"), **members}


def sort_by(names: Sequence[str], default: str) -> fields.String:
    """Return the field that names the column to order by."""
    return fields.String(load_default=default, validate=validate.OneOf(names))


def sort_order(default: str = "desc") -> fields.String:
    """Return the field for the direction of the order."""
    return fields.String(load_default=default, validate=validate.OneOf(("asc", "desc")))


@cache  # since a description must not have two schemas of one name
def page_of(item: type[Schema], **more: fields.Field[Any]) -> Schema:
    """Return the answer of a list: the items, how many match, and the limits in force."""
    members: dict[str, Any] = {
        "items": fields.List(fields.Nested(item)),
        "total": fields.Integer(),
        "total_is_exact": fields.Boolean(
            metadata={"description": f"false if `total`, above {MAX_COUNTED:,}, is an estimate"}
        ),
        "limit": fields.Integer(),
        "offset": fields.Integer(),
        **more,
    }
    page = Answer.from_dict(members, name=f"{item.__name__}Page")
    page.__doc__ = "A page of a list."
    return page()
