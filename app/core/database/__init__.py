"""Database access: transactions, pools, locks."""
