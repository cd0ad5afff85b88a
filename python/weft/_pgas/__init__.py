"""The global arrays of weft.pgas."""
