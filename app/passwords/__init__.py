"""Passwords: changing one's own, and replacing a forgotten one by mail."""
