// Eight queens: a search of many calls. Each call places one more queen; quiescence ends the search.
//
//   weft run -n 2 build/release/examples/queens
//
// In Charm++ each board of such a search is a chare, which its parent makes and the runtime places. Here a board is a call of a member of
// a group, and the members deal the calls out among themselves.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "weft/weft.h"

constexpr int kSize = 8;
constexpr int kParallelRows = 3;  // what is below a board with so many queens is one call
constexpr std::uint32_t kAllColumns = (1U << kSize) - 1;

// The fields of the next row that the queens above attack: in their columns, and on their diagonals.
struct Board {
  int row = 0;
  std::uint32_t columns = 0;
  std::uint32_t left = 0;
  std::uint32_t right = 0;
};

// Calls function(board) for each board that has one more queen.
template <class Function>
void for_each_next(const Board& board, const Function& function) {
  std::uint32_t free = kAllColumns & ~(board.columns | board.left | board.right);
  for (; free != 0; free &= free - 1) {
    const std::uint32_t queen = free & -free;
    function(
        Board{board.row + 1, board.columns | queen, (board.left | queen) << 1U, (board.right | queen) >> 1U});
  }
}

int count_below(const Board& board) {
  if (board.row == kSize) return 1;
  int count = 0;
  for_each_next(board, [&count](const Board& next) { count += count_below(next); });
  return count;
}

struct Worker : weft::Chare<Worker> {
  void search(Board board) {
    if (board.row == kParallelRows) {
      num_solutions_ += count_below(board);
      return;
    }
    for_each_next(board, [this](const Board& next) {
      proxy()[next_worker_++ % num_pes()].send<&Worker::search>(next);
    });
  }

  weft::Task<int> total() { co_return co_await allreduce(num_solutions_, weft::Reducer::kSum); }

  int num_solutions_ = 0;
  int next_worker_ = pe();
};

weft::Task<> start(weft::Runtime& runtime) {
  auto workers = weft::Group<Worker>::create(runtime);
  workers[0].send<&Worker::search>(Board());
  co_await runtime.quiescence();
  const std::vector<int> totals = co_await workers.call<&Worker::total>();
  std::printf("%d queens have %d solutions\n", kSize, totals[0]);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
