"""What `weft trace` reads and prints."""
