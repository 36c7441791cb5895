"""Access tokens: what people give to programs that are to act for them."""
