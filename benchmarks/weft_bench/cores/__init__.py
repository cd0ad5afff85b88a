"""``weft bench cores``: what programs do, on as many cores as there are.

`points` says what is measured, `programs` by which programs, `machine` which cores there are, `running` makes
the launches and records, `report` the tables and pages. `mpi_cores.c` and its headers lie here, so that the
MPI of any machine can be asked where only the packages of Weft are installed.
"""
