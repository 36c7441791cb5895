"""Accounts: their tables, rules and JSON representation. No HTTP."""
