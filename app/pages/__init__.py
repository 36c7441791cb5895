"""Built-in pages: documents and modules that call the public API like any other frontend."""
