"""What `weft run` does for MPI programs: names programs of another MPI, and starts jobs that a job spawns."""
