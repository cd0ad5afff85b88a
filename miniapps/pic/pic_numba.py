"""The kernels compiled by Numba, kept on disk between runs. pic_numpy.py computes the same to the last bit.

`particles` has NUM_FIELDS rows, of which the first `count` columns are in use. `geometry` holds: size of the
grid, first and end column, first and end row of the block, blocks in x, blocks in y.
"""

import math

from numba import njit

_OPTIONS = {"cache": True, "error_model": "numpy"}


@njit("int64(float64[:, ::1], int64, int64[::1], int32[::1], int32[:, ::1], int64[::1])", **_OPTIONS)
def _find_leaving(particles, count, geometry, slot_of_block, leaving, counts):
    size, blocks_x, blocks_y = geometry[0], geometry[5], geometry[6]
    left, right = float(geometry[1]), float(geometry[2])
    bottom, top = float(geometry[3]), float(geometry[4])
    xs, ys = particles[0], particles[1]
    counts[:] = 0
    num_leaving = 0
    for i in range(count):
        x, y = xs[i], ys[i]
        if left <= x < right and bottom <= y < top:
            continue
        if not (0.0 <= x < size and 0.0 <= y < size):
            return -1 - i
        in_x = ((int(x) + 1) * blocks_x - 1) // size
        in_y = ((int(y) + 1) * blocks_y - 1) // size
        slot = slot_of_block[in_x * blocks_y + in_y]
        if slot < 0:
            return -1 - i
        leaving[0, num_leaving], leaving[1, num_leaving] = i, slot
        counts[slot] += 1
        num_leaving += 1
    return num_leaving


@njit(
    "int64(float64[:, ::1], int64, int8[:, ::1], int64[::1], int32[::1], int32[:, ::1], int64[::1])",
    **_OPTIONS,
)
def move(particles, count, grid, geometry, slot_of_block, leaving, counts):
    """One step of all particles; finds those that leave the block.

    `slot_of_block` maps blocks to slots, one for each partner. `leaving` gets the places of the particles
    that leave, in ascending order, and their slots; `counts` the number in each slot. Returns how many leave,
    or -1 - i if particle i has got to a block that is no partner.
    """
    size, first_column, first_row = geometry[0], geometry[1], geometry[3]
    length = float(size)
    xs, ys, vxs, vys, charges = particles[0], particles[1], particles[2], particles[3], particles[4]
    for i in range(count):
        x, y, charge = xs[i], ys[i], charges[i]
        column, row = int(x), int(y)
        left, below = x - column, y - row
        right, above = 1.0 - left, 1.0 - below
        column -= first_column
        row -= first_row

        square = left * left + below * below
        r = math.sqrt(square)
        force = charge * grid[column, row] / square
        fx, fy = force * left / r, force * below / r
        square = left * left + above * above
        r = math.sqrt(square)
        force = charge * grid[column, row + 1] / square
        fx += force * left / r
        fy -= force * above / r
        square = right * right + below * below
        r = math.sqrt(square)
        force = charge * grid[column + 1, row] / square
        fx -= force * right / r
        fy += force * below / r
        square = right * right + above * above
        r = math.sqrt(square)
        force = charge * grid[column + 1, row + 1] / square
        fx -= force * right / r
        fy -= force * above / r

        x = x + vxs[i] + 0.5 * fx
        y = y + vys[i] + 0.5 * fy
        xs[i] = x - length * math.floor(x / length)
        ys[i] = y - length * math.floor(y / length)
        vxs[i] += fx
        vys[i] += fy
    return _find_leaving(particles, count, geometry, slot_of_block, leaving, counts)


@njit(
    "int64(float64[:, ::1], int64, int32[:, ::1], int64, int64[::1], int64[::1], float64[::1])",
    **_OPTIONS,
)
def take_out(particles, count, leaving, num_leaving, counts, places, outgoing):
    """Takes the particles out that leave. Returns how many are left.

    Those of a slot lie together in `outgoing`, field by field; `places` are where those of each slot begin.
    The last particles fill the gaps.
    """
    for j in range(num_leaving - 1, -1, -1):
        i, slot = leaving[0, j], leaving[1, j]
        at = places[slot]
        places[slot] += 1
        count -= 1
        for field in range(particles.shape[0]):
            outgoing[at + field * counts[slot]] = particles[field, i]
            particles[field, i] = particles[field, count]
    return count


@njit("int64(float64[:, ::1], int64, float64[::1], int64[::1])", **_OPTIONS)
def put_in(particles, count, incoming, geometry):
    """Adds particles, which lie field by field in `incoming`.

    Returns the new count, or -1 if one is outside of the block.
    """
    num_fields = particles.shape[0]
    number = len(incoming) // num_fields
    for i in range(number):
        x, y = incoming[i], incoming[number + i]
        if not (geometry[1] <= x < geometry[2] and geometry[3] <= y < geometry[4]):
            return -1
    for field in range(num_fields):
        for i in range(number):
            particles[field, count + i] = incoming[field * number + i]
    return count + number
