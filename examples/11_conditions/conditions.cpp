// A stencil without a barrier: each cell is at an iteration of its own, and a ghost that comes early waits.
//
//   weft run -n 2 build/release/examples/conditions
#include <cstdio>

#include "weft/weft.h"

constexpr int kNumCells = 8;
constexpr int kNumIterations = 100;

// Has a number, which becomes the sum of its neighbours in each iteration.
struct Cell : weft::Chare<Cell> {
  Cell() : number_(static_cast<int>(linear_index())) { send_ghosts(); }

  void send_ghosts() {
    const int here = static_cast<int>(linear_index());
    for (const int step : {kNumCells - 1, 1}) {
      proxy()[(here + step) % kNumCells].send<&Cell::ghost>(iteration_, number_);
    }
  }

  void ghost(int, int number) {  // a neighbour may be one iteration ahead; its ghost waits
    sum_ += number;
    if (++num_ghosts_ < 2) return;
    number_ = sum_ % 1000;
    sum_ = num_ghosts_ = 0;
    if (++iteration_ < kNumIterations) send_ghosts();
  }
  bool is_current(int iteration) const { return iteration == iteration_; }
  using WhenConditions = weft::WhenConditions<weft::When<&Cell::ghost, &Cell::is_current>>;

  int result() { return number_; }

  int iteration_ = 0;
  int number_;
  int sum_ = 0;
  int num_ghosts_ = 0;
};

weft::Task<> start(weft::Runtime& runtime) {
  auto cells = weft::Array<Cell>::create(runtime, {kNumCells});
  co_await cells.created();
  co_await runtime.quiescence();
  std::printf("after %d iterations:", kNumIterations);
  for (const int number : co_await cells.call<&Cell::result>()) std::printf(" %d", number);
  std::printf("\n");
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
