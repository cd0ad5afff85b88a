"""Eight queens: a search of many calls. Each call places one more queen; quiescence ends the search.

weft run -n 2 examples/22_queens/queens.py
"""

import weft

SIZE = 8
PARALLEL_ROWS = 3  # what is below a board with so many queens is one call


def next_boards(board):
    """Boards with one more queen. A board: its row, and the fields that its queens attack."""
    row, columns, left, right = board
    free = (1 << SIZE) - 1 & ~(columns | left | right)
    while free:
        queen = free & -free
        free ^= queen
        yield row + 1, columns | queen, (left | queen) << 1, (right | queen) >> 1


def count_below(board):
    return 1 if board[0] == SIZE else sum(map(count_below, next_boards(board)))


class Worker(weft.Chare):
    def __init__(self):
        self.num_solutions = 0
        self.next_worker = weft.my_pe()

    def search(self, board):
        if board[0] == PARALLEL_ROWS:
            self.num_solutions += count_below(board)
            return
        for following in next_boards(board):
            self.proxy[self.next_worker % weft.num_pes()].search(following)
            self.next_worker += 1

    async def total(self):
        return await self.allreduce(self.num_solutions, weft.Reducer.sum)


async def main():
    workers = weft.Group(Worker)
    workers[0].search((0, 0, 0, 0))
    await weft.quiescence()
    print(f"{SIZE} queens have {(await workers.total.call())[0]} solutions")


weft.run(main)
