// Shared by the measuring programs: the command line, the clock, the printed line.
//
//   program BENCH SIZE:ITERATIONS:WARMUP[:BUFFERS]...
//           [--memory host|emulated|cuda] [--way tag|am|measured|...] [--devices 0,1]
//
// BENCH is latency, bandwidth or rate, in the manner of the OSU benchmarks. allreduce, busy_receiver and collective_times
// have a bench of their own, which they explain. latency: a ping-pong; one way is half of a round trip, averaged over
// ITERATIONS round trips. bandwidth and rate: ITERATIONS windows of kWindow sends in flight together, the receives posted
// as one window, one acknowledgement without data per window.
// pgas_latency, pgas_flood, pgas_flood_both, pgas_fetch_add and memspeed are of one-sided operations: the time of one that is
// awaited before the next; windows of kFloodWindow that are awaited together, by one or by both processes at once; bytes per
// second of large copies, one at a time.
// WARMUP round trips or windows come first, untimed. The clock of PE 0 runs from its first send after
// the warm-up to the last reply. The messages of windows take BUFFERS buffers in turn at either end, by default
// one, as in osu_bw.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weft/memory/buffer.h"

#include "benchmarks/weft_bench/cores/pin.h"

namespace weft::benchmarks {

inline constexpr int kWindow = 64;
inline constexpr int kFloodWindow = 100;

enum class Bench {
  kLatency,
  kBandwidth,
  kRate,
  kAllreduce,
  kBusy,
  kReduction,
  kOneSided,
  kFlood,
  kFloodBoth,
  kFetchAdd,
  kMemspeed
};

struct Step {
  std::size_t size_bytes = 0;
  std::int64_t iterations = 0;
  std::int64_t warmup = 0;
  std::int64_t buffers = 1;

  void pup(auto& p) { p | size_bytes | iterations | warmup | buffers; }
};

struct Arguments {
  Bench bench = Bench::kLatency;
  std::vector<Step> steps;
  memory::Kind memory = memory::Kind::kHost;
  // For the bare machine: tagged or active messages. For entry methods: "measured" for chares whose load is measured.
  // Programs of one-sided operations explain theirs.
  std::string way = "tag";
  // For one process that uses two devices.
  std::array<int, 2> devices{0, 1};
};

// Ends the process with a sentence on stderr if the command line is not as above.
Arguments parse_arguments(int argc, char** argv);

// Prints {"size_bytes": ..., "metric": ..., "value": ...} for a step whose timed part took `elapsed_s`.
void report(Bench bench, const Step& step, double elapsed_s);
// The same for a figure of another kind.
void report(std::string_view metric, std::size_t size_bytes, double value);

// Prints the error to stderr and ends the process.
[[noreturn]] void die(std::string_view message);

class Stopwatch {
 public:
  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The number that the whole text is; 0 if it is none.
std::uint64_t number_in(std::string_view text);

// A number that the command line of a program may name: --NAME NUMBER.
struct NamedNumber {
  std::string_view name;
  std::uint64_t& value;  // has the default
  std::uint64_t least = 1;
  std::uint64_t most = std::uint64_t{1} << 62;
};

// Reads [--NAME NUMBER]... and [--way single|aggregated] where there is `is_aggregated`. Ends the process with `usage` if the command line
// is something else, or a number is too small or too large.
void parse_numbers(int argc, char** argv, std::string_view usage, std::initializer_list<NamedNumber> numbers,
                   bool* is_aggregated = nullptr);

}  // namespace weft::benchmarks
