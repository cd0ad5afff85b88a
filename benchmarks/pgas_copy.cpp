// One-sided operations on global memory between two PEs, in the manner of UPC++'s GPU microbenchmark: pgas_latency,
// pgas_flood, pgas_flood_both and memspeed (measuring.h).
//
//   weft run -n 2 pgas_copy BENCH SIZE:ITERATIONS:WARMUP[:BUFFERS]... --way OPERATION,SOURCE-TARGET,WHERE [--memory KIND]
//
// OPERATION: put (from this PE's segment to the other PE's), get (the other way), put_value and get_value (a value of 8 bytes
// that lies in no segment). SOURCE and TARGET: host or device, which is memory of KIND. WHERE: remote, or local, where both
// segments are PE 0's. PE 0 operates, and in pgas_flood_both PE 1 as well; a PE that does not waits for a message.
// The operations take BUFFERS places of each segment in turn.
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/job/pgas_run.h"
#include "weft/pgas/teams.h"
#include "weft/weft.h"

#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

using Bytes = weft::GlobalPtr<std::byte>;
constexpr std::byte kSent{1};
constexpr std::byte kOld{2};

struct Pattern {
  bool is_put = true;
  bool is_value = false;
  bool is_local = false;
  weft::Kind source = weft::Kind::kHost;
  weft::Kind target = weft::Kind::kHost;
};

weft::Kind parse_kind(std::string_view name, weft::Kind device) {
  if (name != "host" && name != "device") die("SOURCE and TARGET are host or device");
  return name == "host" ? weft::Kind::kHost : device;
}

Pattern parse_pattern(std::string_view way, weft::Kind device) {
  const std::size_t comma = way.find(',');
  const std::size_t dash = way.find('-', comma);
  const std::size_t last = way.find(',', dash);
  if (last == way.npos) die("--way OPERATION,SOURCE-TARGET,WHERE, as in put,host-device,remote");
  const std::string_view operation = way.substr(0, comma);
  const std::string_view where = way.substr(last + 1);
  Pattern pattern;
  pattern.is_put = operation.starts_with("put");
  pattern.is_value = operation.ends_with("_value");
  pattern.is_local = where == "local";
  pattern.source = parse_kind(way.substr(comma + 1, dash - comma - 1), device);
  pattern.target = parse_kind(way.substr(dash + 1, last - dash - 1), device);
  const bool is_known =
      operation == "put" || operation == "get" || operation == "put_value" || operation == "get_value";
  if (!is_known || (where != "local" && where != "remote")) {
    die("OPERATION is put, get, put_value or get_value, and WHERE is local or remote");
  }
  return pattern;
}

// What one PE does at one size.
class Peer {
 public:
  Peer(weft::pgas::World& world, Bench bench, const Pattern& pattern, const Step& step)
      : world_(world),
        pgas_(world.runtime().model<weft::Pgas>()),
        bench_(bench),
        pattern_(pattern),
        step_(step),
        source_(make_segment(pattern.source)),
        target_(make_segment(pattern.target)) {}

  weft::Task<> play() {
    co_await fill(source_, kSent);
    co_await fill(target_, kOld);
    const std::vector<Bytes> sources = co_await world_.allgather(source_.pointer<std::byte>());
    const std::vector<Bytes> targets = co_await world_.allgather(target_.pointer<std::byte>());
    const auto own = static_cast<std::size_t>(world_.rank());
    const std::size_t other = pattern_.is_local ? own : 1 - own;
    from_ = sources[pattern_.is_put ? own : other];
    to_ = targets[pattern_.is_put ? other : own];
    const bool is_active = own == 0 || bench_ == Bench::kFloodBoth;
    if (is_active) co_await operate(step_.warmup);
    co_await world_.barrier();
    Stopwatch stopwatch;
    if (is_active) co_await operate(step_.iterations);
    if (bench_ == Bench::kFloodBoth) co_await world_.barrier();
    if (own == 0) report(bench_, step_, stopwatch.elapsed_s());
    if (is_active && step_.iterations > 0) co_await expect_arrived();
    // The other PE's segments stay until this PE has used them.
    co_await world_.barrier();
  }

 private:
  weft::rma::Segment make_segment(weft::Kind kind) {
    const std::size_t size_bytes = step_.size_bytes * static_cast<std::size_t>(step_.buffers);
    return pgas_.make_segment<std::byte>(size_bytes, weft::device_of(world_.runtime(), kind));
  }

  weft::Task<> fill(const weft::rma::Segment& segment, std::byte value) {
    const std::vector<std::byte> values(segment.size_bytes(), value);
    co_await pgas_.put(std::span(values), segment.pointer<std::byte>());
  }

  weft::Task<> operate(std::int64_t count) {
    if (pattern_.is_value) return pattern_.is_put ? put_values(count) : get_values(count);
    return bench_ == Bench::kOneSided || bench_ == Bench::kMemspeed ? copies(count) : windows(count);
  }

  weft::Task<> copies(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::ptrdiff_t place = next_place();
      co_await pgas_.copy(from_ + place, to_ + place, step_.size_bytes);
    }
  }

  weft::Task<> put_values(std::int64_t count) {
    const weft::GlobalPtr<std::uint64_t> to = to_.cast<std::uint64_t>();
    for (std::int64_t i = 0; i < count; ++i) co_await pgas_.put(0x0101010101010101U, to);
  }

  weft::Task<> get_values(std::int64_t count) {
    const weft::GlobalPtr<std::uint64_t> from = from_.cast<std::uint64_t>();
    for (std::int64_t i = 0; i < count; ++i) value_ = co_await pgas_.get(from);
  }

  weft::Task<> windows(std::int64_t count) {
    std::vector<weft::rma::Done> operations;
    operations.reserve(kFloodWindow);
    for (std::int64_t i = 0; i < count; ++i) {
      for (int slot = 0; slot < kFloodWindow; ++slot) {
        const std::ptrdiff_t place = next_place();
        weft::rma::Done copy = pgas_.copy(from_ + place, to_ + place, step_.size_bytes);
        // One that is over needs no await. The last is awaited, so that the PE takes its turns.
        if (!copy.is_done() || slot + 1 == kFloodWindow) operations.push_back(std::move(copy));
      }
      for (const weft::rma::Done& operation : operations) co_await operation;
      operations.clear();
    }
  }

  std::ptrdiff_t next_place() {
    if (++last_place_ >= step_.buffers) last_place_ = 0;
    return last_place_ * static_cast<std::ptrdiff_t>(step_.size_bytes);
  }

  weft::Task<> expect_arrived() {
    std::byte last = kSent;
    if (pattern_.is_value && !pattern_.is_put) {
      last = static_cast<std::byte>(value_);
    } else {
      last = co_await pgas_.get(to_ + static_cast<std::ptrdiff_t>(step_.size_bytes - 1));
    }
    if (last != kSent) die("what was sent has not arrived");
  }

  weft::pgas::World& world_;
  weft::Pgas& pgas_;
  Bench bench_;
  Pattern pattern_;
  Step step_;
  weft::rma::Segment source_;
  weft::rma::Segment target_;
  Bytes from_;
  Bytes to_;
  std::int64_t last_place_ = -1;
  std::uint64_t value_ = 0;
};

weft::Task<> measure(weft::pgas::World& world, const Arguments& arguments) {
  if (world.size() != 2) die("this needs 2 PEs: weft run -n 2 pgas_copy ...");
  pin(world.rank());
  const Pattern pattern = parse_pattern(arguments.way, arguments.memory);
  for (const Step& step : arguments.steps) {
    if (pattern.is_value && step.size_bytes != sizeof(std::uint64_t)) die("values have 8 bytes");
    Peer peer(world, arguments.bench, pattern, step);
    co_await peer.play();
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  auto arguments = weft::benchmarks::parse_arguments(argc, argv);
  return weft::pgas::run(argc, argv, [&arguments](weft::pgas::World& world) {
    return weft::benchmarks::measure(world, arguments);
  });
}
