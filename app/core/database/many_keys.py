"""A condition for many keys, passed as one parameter."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, String, bindparam
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType, TypeDecorator, TypeEngine


def among(key: InstrumentedAttribute[Any], parameter: str) -> ColumnElement[bool]:
    """Return the condition that `key` is in the list bound to `parameter`."""
    return _Among(key, bindparam(parameter, type_=_Keys(key.type)))


class _Keys(TypeDecorator[Sequence[Any]]):
    """A list of values of one type: an array, or JSON text where there are no arrays."""

    impl = String
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type that the parameter is sent as."""
        return dialect.type_descriptor(String() if dialect.name == "sqlite" else ARRAY(self.item))

    def process_bind_param(self, value: Sequence[Any] | None, dialect: Dialect) -> Any:
        """Return the list as the driver takes it."""
        values = list(value or ())
        if dialect.name != "sqlite":
            return values
        bind = self.item.dialect_impl(dialect).bind_processor(dialect)
        return json.dumps([bind(item) for item in values] if bind else values)


class _Among(FunctionElement[bool]):
    """See `among`."""

    name = "among"
    # As a Boolean it would be compared with 1 on SQLite, which then would not use an index.
    type: TypeEngine[Any] = NullType()
    inherit_cache = True


@compiles(_Among)
def _with_array(element: _Among, compiler: SQLCompiler, **options: Any) -> str:
    key, keys = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{key} = ANY ({keys})"


@compiles(_Among, "sqlite")
def _with_json(element: _Among, compiler: SQLCompiler, **options: Any) -> str:
    key, keys = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{key} IN (SELECT value FROM json_each({keys}))"  # noqa: S608 - a column, a placeholder
