"""The baseline: one Flask route that returns a small envelope and does nothing else."""

from flask import Flask, Response, jsonify

app = Flask(__name__)


@app.get("/")
def root() -> Response:
    """Return a minimal successful envelope."""
    return jsonify(code="success", msg="", data={"hello": "bench"}, error=None)
