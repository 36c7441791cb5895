"""What a view takes is what its schemas load: mypy sees the one, marshmallow the other."""

import inspect
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from marshmallow import fields

from app.web.operation import operation_of
from app.web.paging import PageQuery
from tests.contract.routes import routes

OTHERS = {"principal", "by", "page", "upload"}
PAGE = {"limit", "offset", "sort_by", "sort_order"}  # which loads as `page`


def type_of(field: fields.Field[Any]) -> type:
    if isinstance(field, fields.Enum):
        return field.enum
    kinds = {
        fields.Integer: int,
        fields.Boolean: bool,
        fields.String: str,
        fields.List: list,
    }
    return next((kind for its_class, kind in kinds.items() if isinstance(field, its_class)), dict)


def test_a_view_takes_the_members_of_its_body_and_query_by_name_and_type(app):
    for route in routes(app):
        view = inspect.unwrap(app.view_functions[route.endpoint])
        operation = operation_of(app.view_functions[route.endpoint])
        schemas = [schema() for schema in (operation.body, operation.query) if schema]
        loaded = {name: field for schema in schemas for name, field in schema.fields.items()}
        if any(isinstance(schema, PageQuery) for schema in schemas):
            loaded = {name: field for name, field in loaded.items() if name not in PAGE}
        parameters = inspect.signature(view).parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            continue
        hints = {name: parameter.annotation for name, parameter in parameters.items()}
        assert hints.keys() - OTHERS - set(route.arguments) == loaded.keys(), route.name
        for name, field in loaded.items():
            hint = hints[name]
            if hint is Any:
                continue
            parts = get_args(hint) if isinstance(hint, UnionType) else (hint,)
            kinds = {get_origin(part) or part for part in parts}
            wanted = {type_of(field)} | ({NoneType} if field.load_default is None else set())
            assert kinds == wanted, (route.name, name)
