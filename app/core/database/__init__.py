"""What `core/db.py` is made of, and what statements need: pools, prepared statements, locks."""
