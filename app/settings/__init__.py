"""Runtime settings stored in the database: their keys, their table, and changing them."""
