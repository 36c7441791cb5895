"""Measures the real service beside a bare Flask route and pure Argon2id: `python -m bench`."""
