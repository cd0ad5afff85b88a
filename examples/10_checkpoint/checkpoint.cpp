// A program that goes on where an earlier job has stopped, or was killed, also on another number of PEs.
//
//   weft run -n 2 build/release/examples/checkpoint results 10
//   weft run -n 3 build/release/examples/checkpoint results 20
#include <cstdio>
#include <string>
#include <vector>

#include "weft/weft.h"

constexpr int kNumCells = 6;
constexpr int kStepsOfCheckpoint = 5;

struct Cell : weft::Chare<Cell> {
  // What is saved, and what travels when the cell moves. A cell that is restored begins with the default constructor.
  void pup(weft::Pup& p) { p | heat_ | left_; }

  void know(weft::ElementProxy<Cell> left) { left_ = left; }
  void warm(double heat) { heat_ += heat; }
  void advance() {
    const double flow = (heat_ + 1) / 4;
    heat_ -= flow;
    left_.send<&Cell::warm>(flow + linear_index());
  }
  double heat() const { return heat_; }

 private:
  double heat_ = 0;
  weft::ElementProxy<Cell> left_;
};

std::string folder = "results";
int last_step = 10;

weft::Task<> start(weft::Runtime& runtime) {
  weft::Array<Cell> cells;
  int step = 0;
  if (weft::has_checkpoint(folder)) {
    co_await weft::restore(runtime, folder, cells, step);
    std::printf("goes on after step %d\n", step);
  } else {
    cells = weft::Array<Cell>::create(runtime, kNumCells);
    for (int i = 0; i < kNumCells; ++i) {
      co_await cells[i].call<&Cell::know>(cells[(i + kNumCells - 1) % kNumCells]);
    }
  }
  while (step < last_step) {
    co_await cells.call<&Cell::advance>();
    co_await runtime.quiescence();
    ++step;
    if (step % kStepsOfCheckpoint == 0) co_await weft::checkpoint(runtime, folder, cells, step);
  }
  double sum = 0;
  for (const double heat : co_await cells.call<&Cell::heat>()) sum += heat;
  std::printf("the heat after %d steps is %g\n", step, sum);
}

int main(int argc, char** argv) {
  if (argc > 1) folder = argv[1];
  if (argc > 2) last_step = std::stoi(argv[2]);
  return weft::run(argc, argv, start);
}
