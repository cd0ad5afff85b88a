"""A job: its start and end, its main, its devices and which way its data went."""
