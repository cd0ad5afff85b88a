// The operations of points.h, asked of chares: a group with a member on each PE.
//
// Messages are calls of entry methods: a message of 8 bytes is an integer argument, any other a span of bytes, which the method views
// where it arrived. broadcast is a call of all members. all_to_all is a call of each member by each. Chares have no reduce_scatter and
// no scan.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/measuring.h"
#include "benchmarks/weft_bench/cores/points.h"

namespace weft::benchmarks {
namespace {

class Member : public weft::Chare<Member> {
 public:
  Member() { pin(pe()); }

  // The seconds of a run on this PE.
  weft::Task<double> time_run(int operation, std::uint64_t size_bytes, std::int64_t rounds) {
    const Point point{static_cast<Operation>(operation), size_bytes};
    data_.assign(size_bytes, std::byte{1});
    values_.assign(size_bytes / sizeof(double), 1.0);
    co_await allreduce();
    Stopwatch stopwatch;
    if (point.operation == kBroadcast || point.operation == kReduce) {
      const std::int64_t batch = rounds_of_batch(point);
      for (std::int64_t left = rounds; left > 0; left -= batch) {
        co_await run_batch(point.operation, std::min(left, batch));
      }
    } else if (size_bytes == sizeof(double)) {
      co_await run_rounds(point.operation, rounds, 1.0);
    } else {
      co_await run_rounds(point.operation, rounds, values_);
    }
    co_return stopwatch.elapsed_s();
  }

  void take(int lane, std::uint64_t) { arrived(lane); }
  void take_bytes(int lane, std::span<const std::byte>) { arrived(lane); }
  void take_sum(double sum) { arrived_sum(sum); }
  void take_sums(const std::vector<double>& sums) { arrived_sum(sums.back()); }

 private:
  // Messages of one kind that have arrived since the start, and those that are needed to go on.
  struct Lane {
    std::int64_t arrived = 0;
    std::int64_t needed = 0;
    weft::Future<> waiting;
  };

  // Value is double or a vector of them, both for operations that take values.
  template <class Value>
  weft::Task<> run_rounds(Operation operation, std::int64_t rounds, Value value) {
    const int half = num_pes() / 2;
    for (std::int64_t i = 0; i < rounds; ++i) {
      switch (operation) {
        case kWindows:
          if (pe() < half) {
            for (int sent = 0; sent < kWindowSends; ++sent) send(pe() + half);
            if (need(1)) co_await lanes_[0].waiting;
          } else if (pe() < 2 * half) {
            if (need(kWindowSends)) co_await lanes_[0].waiting;
            proxy()[pe() - half].send<&Member::take>(0, 1U);
          }
          break;
        case kAllToOne:
          if (pe() != 0) {
            for (int sent = 0; sent < kFloodSends; ++sent) send(0);
          } else if (need(kFloodSends * (num_pes() - 1))) {
            co_await lanes_[0].waiting;
          }
          co_await allreduce();
          break;
        case kSolverStep:
          send((pe() + 1) % num_pes());
          send((pe() + num_pes() - 1) % num_pes());
          if (need(2)) co_await lanes_[0].waiting;
          expect_sum(co_await allreduce(1.0, weft::Reducer::kSum));
          break;
        case kAllReduce:
          expect_sum(last_of(co_await allreduce(value, weft::Reducer::kSum)));
          break;
        case kAllGather: {
          const std::vector<Value> values = co_await allgather(value);
          expect_sum(static_cast<double>(values.size()));
          break;
        }
        case kAllToAll: {
          // A member that has all of this round may send those of the next one, and no later ones.
          const int lane = static_cast<int>(i % 2);
          for (int other = 1; other <= num_pes(); ++other) send((pe() + other) % num_pes(), lane);
          if (need(num_pes(), lane)) co_await lanes_[lane].waiting;
          break;
        }
        case kBarrier:
          co_await allreduce();
          break;
        default:
          die("chares have no such operation");
      }
    }
  }

  // The other members go ahead of the root, to the barrier.
  weft::Task<> run_batch(Operation operation, std::int64_t rounds) {
    const bool is_number = data_.size() == sizeof(double);
    for (std::int64_t i = 0; i < rounds; ++i) {
      if (operation == kReduce) {
        if (is_number) {
          contribute(1.0, weft::Reducer::kSum, proxy()[0].target<&Member::take_sum>());
        } else {
          contribute(values_, weft::Reducer::kSum, proxy()[0].target<&Member::take_sums>());
        }
      } else if (pe() == 0) {
        if (is_number) {
          proxy().send<&Member::take>(0, 1U);
        } else {
          proxy().send<&Member::take_bytes>(0, std::span<const std::byte>(data_));
        }
      }
    }
    if ((operation == kBroadcast || pe() == 0) && need(rounds)) co_await lanes_[0].waiting;
    co_await allreduce();
  }

  void send(int to, int lane = 0) {
    if (data_.size() == sizeof(std::uint64_t)) {
      proxy()[to].send<&Member::take>(lane, 1U);
    } else {
      proxy()[to].send<&Member::take_bytes>(lane, std::span<const std::byte>(data_));
    }
  }

  // So many messages more are needed. Whether to await `waiting` of the lane: they have not arrived yet.
  bool need(std::int64_t count, int lane_number = 0) {
    Lane& lane = lanes_.at(static_cast<std::size_t>(lane_number));
    lane.needed += count;
    if (lane.arrived >= lane.needed) return false;
    lane.waiting = weft::Future<>(runtime());
    return true;
  }
  void arrived(int lane_number) {
    Lane& lane = lanes_.at(static_cast<std::size_t>(lane_number));
    if (++lane.arrived == lane.needed) lane.waiting.set();
  }
  void arrived_sum(double sum) {
    expect_sum(sum);
    arrived(0);
  }

  void expect_sum(double sum) const {
    if (sum != num_pes()) die("the collective missed PEs");
  }
  static double last_of(double value) { return value; }
  static double last_of(const std::vector<double>& values) { return values.back(); }

  std::vector<std::byte> data_;
  std::vector<double> values_;
  std::array<Lane, 2> lanes_;
};

weft::Task<> measure(weft::Runtime& runtime, double budget_s, const std::vector<Point>& points) {
  auto members = weft::Group<Member>::create(runtime);
  for (const Point& point : points) {
    Run run = kFirstRun;
    while (true) {
      const std::vector<double> times_s = co_await members.call<&Member::time_run>(
          static_cast<int>(point.operation), std::uint64_t{point.size_bytes}, std::int64_t{run.rounds});
      const double longest_s = *std::max_element(times_s.begin(), times_s.end());
      if (run.is_timed != 0) {
        print_figure(point, run, longest_s, runtime.num_pes());
        break;
      }
      run = run_after(run, longest_s, budget_s);
    }
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  std::vector<Point> points;
  for (int i = 2; i < argc; ++i) points.push_back(parse_point(argv[i]));
  return weft::run(argc, argv, [&](weft::Runtime& runtime) {
    const double budget_s = parse_budget(argc > 1 ? argv[1] : nullptr, runtime.num_pes());
    return measure(runtime, budget_s, points);
  });
}
