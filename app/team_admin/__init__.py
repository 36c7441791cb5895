"""Teams as administrators see and change them."""
