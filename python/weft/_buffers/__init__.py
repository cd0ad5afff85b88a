"""Memory of arrays: packed, and registered with the network."""
