"""weft.Pool: the face, the job of one call, and the chares that run tasks."""
