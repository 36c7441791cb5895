"""Changing the password of a signed-in account."""
