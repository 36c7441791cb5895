"""Database access: transactions, pools, prepared statements, locks."""
