"""The OpenAPI document, from the routes and what their decorators gathered. Knows no area.

Invariant: it says what the running service does; nothing in it is written down a second time
except what is true of every route alike.
"""
