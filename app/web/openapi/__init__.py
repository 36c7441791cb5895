"""The OpenAPI document, derived from the routes and their decorators. Depends on no area.

Invariant: it describes what the running service does; nothing in it is written by hand a second
time except what holds for every route.
"""
