"""The API description of what a page receives: one event of the stream."""

from typing import Any

from marshmallow import Schema, fields, validate

from app.events.messages import Kind
from app.web.schema import Either, WholeNumber, example_metadata


class PersonalWorkspace(Schema):
    """The account's own files."""

    kind = fields.String(required=True, validate=validate.Equal("personal"))


class TeamWorkspace(Schema):
    """The files of a team."""

    kind = fields.String(required=True, validate=validate.Equal("team"))
    team_id = WholeNumber(required=True)


def _ids(description: str, example: list[int]) -> fields.Field[Any]:
    about = {"description": description, "examples": [example]}
    return fields.List(WholeNumber(), required=True, metadata=about)


class StorageEvent(Schema):
    """A change in a workspace the account can see."""

    kind = fields.Enum(
        Kind,
        by_value=True,
        required=True,
        metadata={
            "description": "`sync.required` means that events were missed: reload everything"
        },
    )
    workspace = Either(
        PersonalWorkspace,
        TeamWorkspace,
        required=True,
        allow_none=True,
        metadata={"description": "null only for `sync.required`"},
    )
    file_ids = _ids("ascending, each once", [41])
    folder_ids = _ids("ascending, each once", [])
    affected_parent_ids = _ids("the folders whose listing changed, ascending, each once", [12])
    root_affected = fields.Boolean(
        required=True,
        metadata={"description": "whether the listing of the root changed", "examples": [False]},
    )
    affects_quota = fields.Boolean(
        required=True,
        metadata={"description": "`storage_delta` is not 0; also true for `sync.required`"},
    )
    storage_delta = WholeNumber(
        required=True,
        allow_none=True,
        metadata={
            **example_metadata(1048576),
            "description": "bytes gained, or freed if negative; null if the quota is not involved",
        },
    )
    at = fields.DateTime(required=True)
