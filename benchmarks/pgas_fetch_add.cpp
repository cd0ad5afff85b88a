// fetch_add of PE 0 on 64-bit words in a host segment of PE 1: pgas_fetch_add (measuring.h). SIZE is 8.
//
//   weft run -n 2 pgas_fetch_add pgas_fetch_add 8:ITERATIONS:WARMUP --way alone|contended|owned
//
// alone: one word, which PE 1 leaves alone. After the first operation, its cache line is PE 0's.
// contended: both PEs add to one word at once. The time is that of one PE's operation.
// owned: each operation is on another cache line, which PE 1 has written before, and waits for the one before it. Each line
// must come from PE 1's cache.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "weft/job/pgas_run.h"
#include "weft/pgas/teams.h"
#include "weft/weft.h"

#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

using Word = weft::GlobalPtr<std::uint64_t>;

// A round of "owned" has so many lines: more than the first-level cache, less than the second.
constexpr std::int64_t kLines = 2048;
constexpr std::ptrdiff_t kWordsPerLine = 16;
// Odd: the lines come in an order that no prefetcher knows.
constexpr std::int64_t kLineStep = 1237;

weft::Task<> add(weft::Pgas& pgas, Word word, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) co_await pgas.fetch_add(word, 1);
}

// The number of each line depends on the value before it, so the processor cannot fetch lines ahead.
weft::Task<> add_to_lines(weft::Pgas& pgas, Word first) {
  std::int64_t line = 0;
  for (std::int64_t i = 0; i < kLines; ++i) {
    const std::uint64_t before = co_await pgas.fetch_add(first + line * kWordsPerLine, 1);
    line = (line + static_cast<std::int64_t>(before)) % kLines;
  }
}

// The seconds of `count` operations of this PE.
weft::Task<double> one_word(weft::pgas::World& world, Word word, std::int64_t count, bool is_contended) {
  auto& pgas = world.runtime().model<weft::Pgas>();
  co_await world.barrier();
  Stopwatch stopwatch;
  if (world.rank() == 0 || is_contended) co_await add(pgas, word, count);
  const double elapsed_s = stopwatch.elapsed_s();
  co_await world.barrier();
  const std::uint64_t found = co_await pgas.atomic_load(word);
  co_await world.barrier();
  if (world.rank() == 0) {
    const auto expected = static_cast<std::uint64_t>(count * (is_contended ? 2 : 1));
    if (found != expected) die("additions are lost");
    co_await pgas.atomic_store(word, 0);
  }
  co_await world.barrier();
  co_return elapsed_s;
}

weft::Task<double> owned_lines(weft::pgas::World& world, Word first, std::int64_t rounds) {
  auto& pgas = world.runtime().model<weft::Pgas>();
  double elapsed_s = 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (world.rank() == 1) {
      for (std::int64_t line = 0; line < kLines; ++line) {
        co_await pgas.atomic_store(first + line * kWordsPerLine, kLineStep);
      }
    }
    co_await world.barrier();
    if (world.rank() == 0) {
      Stopwatch stopwatch;
      co_await add_to_lines(pgas, first);
      elapsed_s += stopwatch.elapsed_s();
    }
    co_await world.barrier();
    if (world.rank() == 1) {
      for (std::int64_t line = 0; line < kLines; ++line) {
        const std::uint64_t found = co_await pgas.atomic_load(first + line * kWordsPerLine);
        if (found != kLineStep + 1) die("not every line was added to");
      }
    }
  }
  co_return elapsed_s;
}

weft::Task<> measure(weft::pgas::World& world, const Arguments& arguments) {
  if (world.size() != 2) die("this needs 2 PEs: weft run -n 2 pgas_fetch_add ...");
  const bool is_owned = arguments.way == "owned";
  const bool is_contended = arguments.way == "contended";
  if (!is_owned && !is_contended && arguments.way != "alone") die("--way is alone, contended or owned");
  pin(world.rank());
  auto& pgas = world.runtime().model<weft::Pgas>();
  const weft::rma::Segment words = pgas.make_segment<std::uint64_t>(kLines * kWordsPerLine);
  const std::vector<Word> firsts = co_await world.allgather(words.pointer<std::uint64_t>());
  for (const Step& step : arguments.steps) {
    if (is_owned) {
      const std::int64_t rounds = std::max<std::int64_t>(1, step.iterations / kLines);
      co_await owned_lines(world, firsts[1], std::max<std::int64_t>(1, step.warmup / kLines));
      const double elapsed_s = co_await owned_lines(world, firsts[1], rounds);
      const Step done{step.size_bytes, rounds * kLines, step.warmup};
      if (world.rank() == 0) report(arguments.bench, done, elapsed_s);
    } else {
      co_await one_word(world, firsts[1], step.warmup, is_contended);
      const double elapsed_s = co_await one_word(world, firsts[1], step.iterations, is_contended);
      if (world.rank() == 0) report(arguments.bench, step, elapsed_s);
    }
  }
  co_await world.barrier();
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  auto arguments = weft::benchmarks::parse_arguments(argc, argv);
  return weft::pgas::run(argc, argv, [&arguments](weft::pgas::World& world) {
    return weft::benchmarks::measure(world, arguments);
  });
}
