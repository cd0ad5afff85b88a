"""Functions over all PEs: a map of unequal tasks, results as they come, a task that uses the pool, a failure.

weft run -n 2 examples/07_pool/pool.py
"""

import math

import weft


def collatz_steps(n):
    """How often n is halved, or tripled and increased, until it is 1."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def simpson(a, b):
    return (b - a) / 6 * (math.sqrt(a) + 4 * math.sqrt((a + b) / 2) + math.sqrt(b))


async def integral(pool, a, b, tolerance):
    """Of the square root, by halves where the function bends. The halves are tasks of the same pool."""
    middle = (a + b) / 2
    halves = simpson(a, middle) + simpson(middle, b)
    if abs(halves - simpson(a, b)) < tolerance:
        return halves
    return sum(
        await pool.starmap(integral, [(pool, a, middle, tolerance / 2), (pool, middle, b, tolerance / 2)])
    )


async def main():
    async with weft.Pool() as pool:
        steps = await pool.map(collatz_steps, range(1, 10_000))
        most = max(steps)
        print(f"{steps.index(most) + 1} takes {most} steps, the most below 10000")

        async for number in pool.imap(collatz_steps, range(1, 10**9)):
            if number > 100:  # the loop may end before the tasks do
                print(f"the first number of more than 100 steps takes {number}")
                break

        calls = [pool.submit(pow, 2, exponent) for exponent in range(10)]
        print("the sum of the powers:", sum([await call async for call in weft.as_completed(calls)]))

        print(f"the integral from 0 to 1: {await pool.submit(integral, pool, 0, 1, 1e-5):.4f}")

        try:
            await pool.map(math.sqrt, [4, 1, -1])
        except ValueError as error:
            print(f"the map failed: ValueError: {error}")


weft.run(main)
