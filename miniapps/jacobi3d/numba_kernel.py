"""The update compiled by Numba, kept on disk between runs. Its arithmetic is that of update_with_numpy."""

from numba import njit


@njit("void(float64[:, :, ::1], float64[:, :, ::1])", cache=True)
def update_with_numba(old, new):
    """Every inner point becomes the mean of its six neighbours."""
    for x in range(1, old.shape[0] - 1):
        for y in range(1, old.shape[1] - 1):
            for z in range(1, old.shape[2] - 1):
                total = old[x - 1, y, z] + old[x + 1, y, z]
                total += old[x, y - 1, z]
                total += old[x, y + 1, z]
                total += old[x, y, z - 1]
                total += old[x, y, z + 1]
                new[x, y, z] = total * (1.0 / 6.0)
