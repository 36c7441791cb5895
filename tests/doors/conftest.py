"""The outer doors: for each member of a registry, that there is a way to it, and that it opens."""

from tests.support.browsing import complaints, loopback, page, site

__all__ = ["complaints", "loopback", "page", "site"]
