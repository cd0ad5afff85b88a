"""A mini-app that loses a PE in a random step of each of its first incarnations.

killed_miniapp.py SEED LOSSES PROGRAM [arguments] runs PROGRAM, the path of jacobi3d.py or pic.py. In each of
the first LOSSES incarnations one PE, which the seed chooses, kills itself in one of its first 30 updates.
"""

from __future__ import annotations

import importlib
import os
import random
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import weft

#: The functions in which a PE is lost: module, class, name.
UPDATES = {
    "jacobi3d.py": [("field", "Field", "update")],
    "pic.py": [("pic_particles", "Particles", "move"), ("pic_device", "DeviceParticles", "start_move")],
}

seed, num_losses = int(sys.argv[1]), int(sys.argv[2])
program = Path(sys.argv[3])
num_updates: Counter[int] = Counter()  # of this process, by incarnation


def die_if_lost() -> None:
    incarnation = weft.recoveries()
    numbers = random.Random(f"{seed} {incarnation}")
    pe, update = numbers.randrange(weft.num_pes()), numbers.randint(1, 30)
    num_updates[incarnation] += 1
    if incarnation < num_losses and (weft.my_pe(), num_updates[incarnation]) == (pe, update):
        os.kill(os.getpid(), signal.SIGKILL)


def with_losses(function: Any) -> Any:
    def run(*arguments: Any) -> Any:
        die_if_lost()
        return function(*arguments)

    return run


sys.path[0] = str(program.parent)
sys.argv = sys.argv[3:]
for module, name, update in UPDATES[program.name]:
    owner = getattr(importlib.import_module(module), name)
    setattr(owner, update, with_losses(getattr(owner, update)))
runpy.run_path(str(program), run_name="__main__")
