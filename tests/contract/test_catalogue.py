"""The codes and statuses of errors against those that the product documents."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from app.core.errors import AppError, ErrorCode
from app.factory import create_app  # imports every area, and so every error
from app.web.errors import STATUSES, status_of

# Every status and code of the product, most of them of its file side.
DOCUMENTED = tuple(
    (int(status), code)
    for status, code in (
        line.split() for line in Path(__file__).with_name("codes.txt").read_text().splitlines()
    )
)
# Where a code has a second status.
SECOND_STATUSES = {
    (413, "file.too_large"),
    (503, "internal_server_error"),
    (503, "database.error"),
    (503, "config.error"),
    (500, "avatar.render_failed"),
}


def all_errors(kinds: Iterable[type[AppError]] = tuple(STATUSES)) -> Iterator[type[AppError]]:
    for error in kinds:
        yield error
        yield from all_errors(error.__subclasses__())


def test_there_are_272_documented_codes():
    assert len({code for _, code in DOCUMENTED}) == 272


def test_every_code_is_documented():
    assert create_app
    assert {code.value for code in ErrorCode} <= {code for _, code in DOCUMENTED}


def test_every_error_class_has_the_status_of_its_code():
    wrong = [
        (error.__qualname__, status_of(error).value, error.code.value)
        for error in set(all_errors())
        if (status_of(error), error.code) not in {*DOCUMENTED, *SECOND_STATUSES}
    ]
    assert wrong == []


def test_every_error_class_tells_people_what_is_wrong():
    silent = [error for error in set(all_errors()) if not error.message.strip()]
    assert silent == []
