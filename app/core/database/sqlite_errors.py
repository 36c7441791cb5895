"""What SQLite says when it fails."""


def kind_of(error: BaseException) -> int:
    """Return the kind of an error, such as `sqlite3.SQLITE_BUSY`; 0 of what is not SQLite's.

    The error may be the driver's or SQLAlchemy's around it. The lower byte is the kind, whatever
    further reason the rest tells (https://sqlite.org/rescode.html).
    """
    code: int = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
    return code & 0xFF
