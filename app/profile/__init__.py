"""The account as its owner sees it."""
