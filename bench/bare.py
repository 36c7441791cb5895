"""A Flask application of one route: what any request costs at least."""

from flask import Flask

app = Flask(__name__)


@app.get("/")
def bare() -> str:
    return "bare"
