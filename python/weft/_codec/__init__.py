"""Values: what the extension asks Python about them, and leaves to pickle."""
