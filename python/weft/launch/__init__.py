"""The parts of `weft run`, which starts the PEs of a job, joins them, and ends the job if one dies.

`job` is the event loop and decides when a job ends; `processes` starts and names PEs; `service` speaks their
protocol with `listener`, `connection`, `frames` and `rendezvous` (its other end is
src/machine/bootstrap/launcher/local.cpp); `hosts` has PEs of other hosts; `losses` judges deaths and
begins a job again; `mpi` is for MPI programs; `signals` and `command`
do what they say. Nothing here needs the extension module, so C++ programs can be launched without it.
"""
