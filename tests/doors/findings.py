"""What is wrong with members of a registry: all of it, not the first that fails."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Error

LENGTH = 800


class Findings:
    """Members by name, with the problem of each; `about` goes on after one."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    @contextmanager
    def about(self, member: str) -> Iterator[None]:
        try:
            yield
        except (AssertionError, Error, KeyError) as problem:
            self.problems.append(f"{member}: {type(problem).__name__} {problem}"[:LENGTH])

    def are_none(self) -> None:
        """Fail with all of them."""
        assert not self.problems, "\n".join(["", *self.problems])
