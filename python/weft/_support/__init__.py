"""The Python half of python/src/support."""
