"""The subcommands of `weft`, by topic. Imports that take time are inside the functions that need them."""
