"""Set-up of a new installation: its state and its first administrator."""
