"""SQLite's error codes."""


def kind_of(error: BaseException) -> int:
    """Return SQLite's primary result code, such as `sqlite3.SQLITE_BUSY`; 0 for any other error.

    The error may be the driver's, or SQLAlchemy's around it. The low byte of an extended result
    code is the primary one (https://sqlite.org/rescode.html).
    """
    code: int = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
    return code & 0xFF
