"""Reaching the database: transactions, pools, prepared statements, locks."""
