"""What models and queries share: the declarative base, column types, and small statements."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import BigInteger, Connection, DateTime, Integer, MetaData, Table, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.types import TypeDecorator

# The execution option of connections that only read, and so begin no transaction.
READING = {"only_reads": True}

# SQLite assigns ids by itself only in a column declared INTEGER.
Id = BigInteger().with_variant(Integer(), "sqlite")


class Base(DeclarativeBase):
    """Base of all tables; constraints are named explicitly so that migrations can refer to them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )

    @classmethod
    def __table_cls__(cls, *parts: Any, **options: Any) -> Table:
        """Make a table whose ids SQLite never gives out again: others keep them."""
        return Table(*parts, sqlite_autoincrement=True, **options)


db = SQLAlchemy(model_class=Base, session_options={"expire_on_commit": False})


class UTCDateTime(TypeDecorator[datetime]):
    """An aware UTC datetime; SQLite, which has no time zones, stores it as text in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], Any]:
        """Return a function that converts a datetime for the driver, and refuses a naive one."""
        return _for_sqlite if dialect.name == "sqlite" else _in_utc

    def result_processor(
        self, dialect: Dialect, _coltype: object
    ) -> Callable[[Any], datetime | None]:
        """Return a function that converts the driver's value to a UTC datetime."""
        return _from_sqlite if dialect.name == "sqlite" else _in_utc


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None or moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        raise ValueError("a naive datetime, which would silently be taken for local time")
    return moment.astimezone(UTC)


def _for_sqlite(moment: datetime | None) -> str | None:
    moment = _in_utc(moment)
    return moment.isoformat(" ", "microseconds").removesuffix("+00:00") if moment else None


def _from_sqlite(text: str | None) -> datetime | None:
    return datetime.fromisoformat(f"{text}+00:00") if text is not None else None


def only_reads(connection: Connection) -> bool:
    """Return whether a connection was opened with the option READING."""
    return bool(connection.get_execution_options().get("only_reads"))


def insert_into(session: Session, table: type[Base]) -> Any:
    """Return an INSERT of the session's database, with `on_conflict_do_update` and the like."""
    dialect = {"sqlite": sqlite, "postgresql": postgresql}[session.get_bind().dialect.name]
    return dialect.insert(table)


def columns_of(row: type[tuple[Any, ...]], *sources: Any) -> tuple[Any, ...]:
    """Return a column for each field of a NamedTuple, from the first source that has it.

    Sources are mapped classes, or the columns of a table. The order is derived from the fields,
    because rows become tuples by position: a second list could get out of step unnoticed.
    """
    names: tuple[str, ...] = row._fields  # type: ignore[attr-defined]
    return tuple(
        next(getattr(source, name) for source in sources if hasattr(source, name)) for name in names
    )


def after_commit(session: Session, do: Callable[[], None]) -> None:
    """Call `do` once the current transaction is committed; never if it is rolled back.

    SQLAlchemy also signals a commit when a savepoint is released: its changes are not visible to
    others yet then, and may never be.
    """

    def committed(ended: Session) -> None:
        if not ended.in_nested_transaction():
            do()

    event.listen(session, "after_commit", committed)
