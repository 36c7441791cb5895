"""Accounts as administrators see and change them, and the accounts of other services."""
