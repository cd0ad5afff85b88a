// A job that protects its chares and loses PEs: recovery_probe PE@STEP... kills PE in its first entry method of STEP, in the
// incarnation that has the position of the argument. In place of PE, rN asks for N PEs before the step is protected. Prints the final
// values, the number of recoveries and the number of PEs.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace {

constexpr int kNumCells = 8;
constexpr int kNumSteps = 10;
constexpr int kStepsOfProtection = 3;

std::vector<std::string> losses;  // of the command line, the same on all PEs

void die_if_lost(weft::Runtime& runtime, int step) {
  const auto incarnation = static_cast<std::size_t>(weft::recoveries(runtime));
  if (incarnation < losses.size() &&
      losses[incarnation] == std::to_string(runtime.pe()) + "@" + std::to_string(step)) {
    kill(getpid(), SIGKILL);
  }
}

// 0: no other number of PEs is wanted.
int pes_wanted(weft::Runtime& runtime, int step) {
  const auto incarnation = static_cast<std::size_t>(weft::recoveries(runtime));
  if (incarnation >= losses.size() || losses[incarnation].front() != 'r') return 0;
  const std::size_t at = losses[incarnation].find('@');
  if (std::stoi(losses[incarnation].substr(at + 1)) != step) return 0;
  return std::stoi(losses[incarnation].substr(1, at - 1));
}

struct Cell : weft::Chare<Cell> {
  Cell() : values(1000, 1.0) {}
  void pup(weft::Pup& p) { p | step | values; }
  void advance() {
    die_if_lost(runtime(), step);
    ++step;
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = values[i] * 1.25 + static_cast<double>(step) / static_cast<double>(i + 1);
  }
  double sum() {
    double total = 0;
    for (const double value : values) total += value;
    return total;
  }
  int step = 0;
  std::vector<double> values;
};

weft::Task<> start(weft::Runtime& runtime) {
  weft::Array<Cell> cells;
  int step = 0;
  const int recovery = co_await weft::recover(runtime, cells, step);
  if (recovery == 0) cells = weft::Array<Cell>::create(runtime, {kNumCells});
  while (step < kNumSteps) {
    co_await cells.call<&Cell::advance>();
    ++step;
    if (const int wanted = pes_wanted(runtime, step); wanted != 0) co_await weft::resize(runtime, wanted);
    if (step % kStepsOfProtection == 0) co_await weft::protect(runtime, cells, step);
  }
  const std::vector<double> sums = co_await cells.call<&Cell::sum>();
  for (const double sum : sums) std::printf("%a ", sum);
  std::printf("\nrecoveries %d\npes %d\n", weft::recoveries(runtime), runtime.num_pes());
}

}  // namespace

int main(int argc, char** argv) {
  losses.assign(argv + 1, argv + argc);
  return weft::run(argc, argv, start);
}
