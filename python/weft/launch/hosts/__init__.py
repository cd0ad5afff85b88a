"""Jobs of `weft run --hosts`: PEs on other hosts, which an agent there starts for the launcher."""
