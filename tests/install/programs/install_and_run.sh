# Runs in a system without a compiler: makes an environment for the interpreter $1, installs the wheel of Weft, and runs programs.
# /given has what the test hands over. With the argument "site" NumPy and UCX are those of /given/site, else wheels of /given/wheels.
set -eu
for name in cc c++ gcc g++ clang clang++ ld; do
  if command -v "$name"; then echo "this system has $name" >&2; exit 1; fi
done
rm -rf /user
"$1" -m venv /user
PATH=/user/bin:$PATH
site=$(/user/bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
if [ "$2" = site ]; then
  for name in numpy numpy.libs libucx libucx_cu13.libs; do
    if [ -e "/given/site/$name" ]; then ln -s "/given/site/$name" "$site/$name"; fi
  done
  pip install -q --no-index --no-deps --find-links /given/wheels weft
else
  pip install -q --no-index --find-links /given/wheels --find-links /given/packages weft
fi
cd /tmp
weft info
weft run -n 2 /given/programs/two_pes.py
if [ -e /given/build/sum ]; then LD_LIBRARY_PATH=$site/weft/mpi/lib weft run -n 2 /given/build/sum; fi
test -e "$(weft cmake-dir)/weft-config.cmake"
test -e "$(weft cmake-dir)/../../../include/weft/weft.h"
for command in "weft mpicc /given/programs/sum.c" "weft mpi4py-wheel --output /tmp"; do
  if $command; then echo "$command needs a compiler, and there is none" >&2; exit 1; fi
done
