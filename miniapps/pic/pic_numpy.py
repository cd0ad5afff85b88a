"""The kernels of pic_numba.py without Numba, which is slower. The results are the same to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np


def move(
    particles: Any, count: int, grid: Any, geometry: Any, slot_of_block: Any, leaving: Any, counts: Any
) -> int:
    size, first_column, end_column, first_row, end_row, blocks_x, blocks_y = (int(n) for n in geometry)
    x, y, vx, vy, charge = particles[:5, :count]
    column, row = x.astype(np.int64), y.astype(np.int64)
    left, below = x - column, y - row
    right, above = 1.0 - left, 1.0 - below
    column -= first_column
    row -= first_row
    fx, fy = 0.0, 0.0
    for dx, dy, charges, sign_x, sign_y in (
        (left, below, grid[column, row], 1.0, 1.0),
        (left, above, grid[column, row + 1], 1.0, -1.0),
        (right, below, grid[column + 1, row], -1.0, 1.0),
        (right, above, grid[column + 1, row + 1], -1.0, -1.0),
    ):
        square = dx * dx + dy * dy
        r = np.sqrt(square)
        force = charge * charges / square
        fx = fx + sign_x * (force * dx / r)
        fy = fy + sign_y * (force * dy / r)
    new_x = x + vx + 0.5 * fx
    new_y = y + vy + 0.5 * fy
    x[:] = new_x - float(size) * np.floor(new_x / size)
    y[:] = new_y - float(size) * np.floor(new_y / size)
    vx += fx
    vy += fy

    counts[:] = 0
    stays = (x >= first_column) & (x < end_column) & (y >= first_row) & (y < end_row)
    places = np.flatnonzero(~stays)
    if len(places) == 0:
        return 0
    x, y = x[places], y[places]
    inside = (x >= 0) & (x < size) & (y >= 0) & (y < size)
    if not inside.all():
        return -1 - int(places[~inside][0])
    in_x = ((x.astype(np.int64) + 1) * blocks_x - 1) // size
    in_y = ((y.astype(np.int64) + 1) * blocks_y - 1) // size
    slots = slot_of_block[in_x * blocks_y + in_y]
    if slots.min() < 0:
        return -1 - int(places[slots < 0][0])
    leaving[0, : len(places)], leaving[1, : len(places)] = places, slots
    counts += np.bincount(slots, minlength=len(counts))
    return len(places)


def take_out(
    particles: Any, count: int, leaving: Any, num_leaving: int, counts: Any, places: Any, outgoing: Any
) -> int:
    for j in range(num_leaving - 1, -1, -1):
        i, slot = leaving[:, j]
        count -= 1
        at = places[slot]
        outgoing[at :: counts[slot]][: len(particles)] = particles[:, i]
        places[slot] += 1
        particles[:, i] = particles[:, count]
    return count


def put_in(particles: Any, count: int, incoming: Any, geometry: Any) -> int:
    rows = incoming.reshape(len(particles), -1)
    x, y = rows[0], rows[1]
    if not ((x >= geometry[1]) & (x < geometry[2]) & (y >= geometry[3]) & (y < geometry[4])).all():
        return -1
    particles[:, count : count + rows.shape[1]] = rows
    return count + rows.shape[1]
