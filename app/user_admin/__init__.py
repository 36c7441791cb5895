"""Accounts as administrators see and change them, and the accounts of other services."""

from app.web.operation import ADMINISTRATION

TAG = ADMINISTRATION
