// The operations of points.h, asked of the PGAS team of all PEs.
//
// windows, solver_step and all_to_all are puts into segments of the other PEs, which are awaited together. all_to_all ends with a
// barrier; the all-reduce of solver_step serves as one. The messages of all_to_one are calls of a function. Values of 8 bytes are
// given by value, others in place, except those of all_gather, which has no such form. Teams have no reduce_scatter and no scan.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/job/pgas_run.h"
#include "weft/pgas/rpc.h"
#include "weft/pgas/teams.h"
#include "weft/weft.h"

#include "benchmarks/measuring.h"
#include "benchmarks/weft_bench/cores/points.h"

namespace weft::benchmarks {
namespace {

using Bytes = weft::GlobalPtr<std::byte>;

// Calls that have arrived on this PE since the start, and those that are needed to go on.
struct Calls {
  std::int64_t arrived = 0;
  std::int64_t needed = 0;
  weft::Future<> waiting;
};
Calls calls_of_flood;

void take() {
  if (++calls_of_flood.arrived == calls_of_flood.needed) calls_of_flood.waiting.set();
}
void take_number(std::uint64_t) { take(); }
void take_bytes(const std::vector<std::byte>&) { take(); }

class TeamRun {
 public:
  TeamRun(weft::pgas::World& world, std::size_t most_bytes)
      : world_(world),
        pgas_(world.runtime().model<weft::Pgas>()),
        incoming_(
            pgas_.make_segment<std::byte>(most_bytes, weft::device_of(world.runtime(), weft::Kind::kHost))),
        outgoing_(most_bytes, std::byte{1}) {}

  weft::Task<> share_segments() { theirs_ = co_await world_.allgather(incoming_.pointer<std::byte>()); }

  // The longest time of a PE, in seconds.
  weft::Task<double> time_run(Point point, std::int64_t rounds) {
    point_ = point;
    values_.assign(point.size_bytes / sizeof(double), 1.0);
    co_await world_.barrier();
    Stopwatch stopwatch;
    if (point.size_bytes == sizeof(double)) {
      co_await run_rounds<true>(rounds);
    } else {
      co_await run_rounds<false>(rounds);
    }
    const double elapsed_s = stopwatch.elapsed_s();
    co_return co_await world_.allreduce(elapsed_s, weft::Reducer::kMax);
  }

 private:
  template <bool kIsNumber>
  weft::Task<> run_rounds(std::int64_t rounds) {
    const bool runs_ahead = point_.operation == kBroadcast || point_.operation == kReduce;
    const std::int64_t batch = rounds_of_batch(point_);
    const int half = size() / 2;
    for (std::int64_t i = 1; i <= rounds; ++i) {
      switch (point_.operation) {
        case kWindows:
          for (int sent = 0; sent < kWindowSends && rank() < half; ++sent) {
            put(rank() + half, sent, sent + 1 == kWindowSends);
          }
          break;
        case kAllToOne:
          co_await flood();
          break;
        case kSolverStep:
          put((rank() + 1) % size(), 0);
          put((rank() + size() - 1) % size(), 1);
          break;
        case kAllToAll:
          for (int other = 1; other <= size(); ++other) put((rank() + other) % size(), rank());
          break;
        case kBroadcast:
          if constexpr (kIsNumber) {
            const double one = co_await world_.broadcast(1.0, 0);
            expect(one, 1);
          } else {
            co_await world_.broadcast_in_place(std::span(values_), 0);
          }
          break;
        case kReduce:
          if constexpr (kIsNumber) {
            const std::optional<double> sum = co_await world_.reduce(1.0, weft::Reducer::kSum, 0);
            expect(sum.value_or(size()), size());
          } else {
            co_await world_.reduce_in_place(std::span(values_), weft::Reducer::kSum, 0);
          }
          break;
        case kAllReduce:
          if constexpr (kIsNumber) {
            const double sum = co_await world_.allreduce(1.0, weft::Reducer::kSum);
            expect(sum, size());
          } else {
            co_await world_.allreduce_in_place(std::span(values_), weft::Reducer::kSum);
          }
          break;
        case kAllGather:
          if constexpr (kIsNumber) {
            const std::vector<double> numbers = co_await world_.allgather(1.0);
            expect(static_cast<double>(numbers.size()), size());
          } else {
            const std::vector<std::vector<double>> blocks = co_await world_.allgather(values_);
            expect(static_cast<double>(blocks.size()), size());
          }
          break;
        case kBarrier:
          co_await world_.barrier();
          break;
        default:
          die("teams have no such operation");
      }
      for (const weft::rma::Done& done : puts_) co_await done;
      puts_.clear();
      if (point_.operation == kSolverStep) {
        const double sum = co_await world_.allreduce(1.0, weft::Reducer::kSum);
        expect(sum, size());
      } else if (point_.operation == kAllToAll || (runs_ahead && (i % batch == 0 || i == rounds))) {
        co_await world_.barrier();
      }
    }
  }

  weft::Task<> flood() {
    if (rank() != 0) {
      const std::vector<std::byte> bytes(point_.size_bytes, std::byte{1});
      for (int i = 0; i < kFloodSends; ++i) {
        if (point_.size_bytes == sizeof(std::uint64_t)) {
          world_.rpc_ff<&take_number>(0, std::uint64_t{1});
        } else {
          world_.rpc_ff<&take_bytes>(0, bytes);
        }
      }
    } else {
      calls_of_flood.needed += std::int64_t{kFloodSends} * (size() - 1);
      if (calls_of_flood.arrived < calls_of_flood.needed) {
        calls_of_flood.waiting = weft::Future<>(world_.runtime());
        co_await calls_of_flood.waiting;
      }
    }
    co_await world_.barrier();
  }

  // Starts a put of the block with that number in this PE's memory and in that PE's segment.
  // One that is over needs no await, except now and then, because the PE takes its turns there.
  void put(int to, int block, bool is_awaited = true) {
    const std::size_t offset = static_cast<std::size_t>(block) * point_.size_bytes;
    weft::rma::Done done =
        pgas_.put(std::span<const std::byte>(outgoing_).subspan(offset, point_.size_bytes),
                  theirs_[static_cast<std::size_t>(to)] + static_cast<std::ptrdiff_t>(offset));
    if (is_awaited || !done.is_done()) puts_.push_back(std::move(done));
  }

  int rank() const { return world_.rank(); }
  int size() const { return world_.size(); }
  static void expect(double found, double expected) {
    if (found != expected) die("the collective missed PEs");
  }

  weft::pgas::World& world_;
  weft::Pgas& pgas_;
  weft::rma::Segment incoming_;
  std::vector<std::byte> outgoing_;
  std::vector<Bytes> theirs_;
  Point point_{kBarrier, 0};
  std::vector<double> values_;
  std::vector<weft::rma::Done> puts_;
};

weft::Task<> measure(weft::pgas::World& world, double budget_s, const std::vector<Point>& points) {
  pin(world.rank());
  std::size_t most_bytes = sizeof(double);
  for (const Point& point : points) most_bytes = std::max(most_bytes, bytes_of_round(point, world.size()));
  TeamRun team(world, most_bytes);
  co_await team.share_segments();
  for (const Point& point : points) {
    Run run = kFirstRun;
    double longest_s = co_await team.time_run(point, run.rounds);
    while (run.is_timed == 0) {
      run = run_after(run, longest_s, budget_s);
      longest_s = co_await team.time_run(point, run.rounds);
    }
    if (world.rank() == 0) print_figure(point, run, longest_s, world.size());
  }
  // The segments stay until all PEs have used them.
  co_await world.barrier();
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  std::vector<Point> points;
  for (int i = 2; i < argc; ++i) points.push_back(parse_point(argv[i]));
  return weft::pgas::run(argc, argv, [&](weft::pgas::World& world) {
    const double budget_s = parse_budget(argc > 1 ? argv[1] : nullptr, world.size());
    return measure(world, budget_s, points);
  });
}
