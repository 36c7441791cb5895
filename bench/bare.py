"""The yardstick: one Flask route that only answers a small envelope."""

from flask import Flask, Response, jsonify

app = Flask(__name__)


@app.get("/")
def root() -> Response:
    """Answer the smallest successful envelope."""
    return jsonify(code="success", msg="", data={"hello": "bench"}, error=None)
