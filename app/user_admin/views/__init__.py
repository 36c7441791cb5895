"""/admin/users."""
