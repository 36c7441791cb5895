"""Runtime settings kept in the database: their keys, their table, changing them."""
