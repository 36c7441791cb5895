"""The account: its tables, its rules, and its wire form. No HTTP."""
