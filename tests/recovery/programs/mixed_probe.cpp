// A random program of chares in C++ that protects what it has, with the command line, the progress file and the result line of mixed.py:
// `tools/recovery_campaign.py --program` kills its PEs at random times.
//
// mixed_probe SEED STEPS [FOLDER [any]]. It has no groups, so it runs on any number of PEs, and computes the same on each.
#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace {

using Numbers = std::mt19937_64;

constexpr int kNumCells = 11;
constexpr int kNumValues = 20'000;

// Of the command line, the same on all PEs.
std::uint64_t seed = 0;
int num_steps = 0;
std::string folder;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  return (std::rotl(hash, 13) ^ value) * 0x9e3779b97f4a7c15;
}

// Random numbers that depend on the program, the step and the cell alone.
Numbers numbers_of(int step, int cell, int purpose) {
  std::uint64_t key = mixed(seed, static_cast<std::uint64_t>(step));
  key = mixed(key, static_cast<std::uint64_t>(cell));
  return Numbers(mixed(key, static_cast<std::uint64_t>(purpose)));
}

int below(Numbers& numbers, int bound) {
  return static_cast<int>(numbers() % static_cast<std::uint64_t>(bound));
}

struct Cell : weft::Chare<Cell> {
  Cell() : values(kNumValues) { std::iota(values.begin(), values.end(), 1.0 + index()); }
  explicit Cell(weft::Moved) {}
  void pup(weft::Pup& p) { p | values | taken; }

  double advance(int step) {
    for (double& value : values) value = value * 0.75 + static_cast<double>(step + taken % 1000);
    return values.back();
  }

  // Messages to some others, which nothing awaits.
  void scatter(int step) {
    Numbers numbers = numbers_of(step, index(), 1);
    for (int left = below(numbers, 5); left > 0; --left) {
      const int to = below(numbers, kNumCells);
      const auto size = static_cast<std::size_t>(1 + 15'000 * below(numbers, 3));
      proxy()[to].send<&Cell::take>(std::vector<int>(size, below(numbers, 1000)));
    }
  }
  void take(std::vector<int> payload) {  // in any order
    taken += std::accumulate(payload.begin(), payload.end(), std::int64_t{1});
  }

  // Sends to the next cell over a channel, and receives from the previous one.
  weft::Task<double> exchange(int step, int size) {
    weft::Channel after(*this, proxy()[(index() + 1) % kNumCells]);
    weft::Channel before(*this, proxy()[(index() + kNumCells - 1) % kNumCells]);
    std::vector<double> mine(static_cast<std::size_t>(size), index() + step);
    std::vector<double> theirs(mine.size());
    auto sent = after.send(std::span(mine));
    co_await before.recv(std::span(theirs));
    co_await sent;
    values[static_cast<std::size_t>(step % kNumValues)] += theirs.back();
    co_return theirs.front() + theirs.back();
  }

  void move(int step) {
    Numbers numbers = numbers_of(step, index(), 2);
    if (below(numbers, 3) != 0) migrate(below(numbers, num_pes()));
  }
  void report(weft::Future<std::int64_t> total) {
    contribute(taken, weft::Reducer::kSum, weft::target_of(total));
  }
  double sum() { return std::accumulate(values.begin(), values.end(), 0.0); }

  std::vector<double> values;
  std::int64_t taken = 0;
};

struct Parts {
  weft::Array<Cell> cells;
  int step = 0;
  std::uint64_t hash = 0;
};

void note(Parts& parts, const std::vector<double>& results) {
  for (const double result : results) parts.hash = mixed(parts.hash, std::bit_cast<std::uint64_t>(result));
}

weft::Task<> do_one(weft::Runtime& runtime, Parts& parts, Numbers& numbers) {
  switch (below(numbers, 5)) {
    case 0:
      note(parts, co_await parts.cells.call<&Cell::advance>(parts.step));
      break;
    case 1: {
      const int size = 1 + 9'000 * below(numbers, 3);
      note(parts, co_await parts.cells.call<&Cell::exchange>(parts.step, size));
      break;
    }
    case 2:
      parts.cells.send<&Cell::move>(parts.step);
      note(parts, co_await parts.cells.call<&Cell::sum>());
      break;
    default: {
      parts.cells.send<&Cell::scatter>(parts.step);
      co_await runtime.quiescence();
      weft::Future<std::int64_t> total(runtime);
      parts.cells.send<&Cell::report>(total);
      parts.hash = mixed(parts.hash, static_cast<std::uint64_t>(co_await total));
    }
  }
}

// One write, so that a reader sees all of it or nothing.
void note_progress(weft::Runtime& runtime, int step) {
  char line[32];
  const int size = std::snprintf(line, sizeof line, "%08d %08d\n", step, weft::recoveries(runtime));
  const int file = open((folder + "/progress").c_str(), O_WRONLY | O_CREAT, 0600);
  if (file < 0 || pwrite(file, line, static_cast<std::size_t>(size), 0) != size) std::abort();
  close(file);
}

weft::Task<> start(weft::Runtime& runtime) {
  Parts parts;
  if (co_await weft::recover(runtime, parts.cells, parts.step, parts.hash) == 0)
    parts.cells = weft::Array<Cell>::create(runtime, kNumCells);
  while (parts.step < num_steps) {
    Numbers numbers = numbers_of(parts.step, kNumCells, 0);
    for (int left = 1 + below(numbers, 4); left > 0; --left) co_await do_one(runtime, parts, numbers);
    ++parts.step;
    if (below(numbers, 2) != 0) continue;
    co_await weft::protect(runtime, parts.cells, parts.step, parts.hash);
    if (folder.empty()) continue;
    note_progress(runtime, parts.step);
    if (std::filesystem::exists(folder + "/stop")) break;
  }
  std::printf("result %d %016llx\n", parts.step, static_cast<unsigned long long>(parts.hash));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  seed = std::strtoull(argv[1], nullptr, 10);
  num_steps = std::atoi(argv[2]);
  if (argc > 3) folder = argv[3];
  return weft::run(argc, argv, start);
}
