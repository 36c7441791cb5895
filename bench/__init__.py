"""Benchmarks the real service against a bare Flask route and pure Argon2id: `python -m bench`."""
