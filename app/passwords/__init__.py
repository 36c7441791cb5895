"""Passwords: changing one's own, and resetting a forgotten one by mail."""
