"""Gatehouse: the account, session and credential service of a file-storage product."""

__version__ = "0.3.0"
