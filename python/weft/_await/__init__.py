"""Awaiting: several things at once, what asyncio makes, and generators that are left."""
