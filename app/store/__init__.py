"""The database and Redis: connections, transactions, flows, limits, messages."""
