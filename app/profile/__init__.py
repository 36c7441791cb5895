"""The signed-in account's own profile and preferences."""
