"""Storage policies and policy groups: where an account's files may be stored."""
