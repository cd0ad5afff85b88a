// Diffusion: load flows between neighbouring PEs, without a PE that knows all loads.
//
// The algorithm is distributed (diffusion_step.h): in each round a PE knows its own objects with their edges, and the time and
// speed of one neighbour. Jobs run it so, see distributed_decision.h. The objects move once, after the last round.
//
// place() simulates the rounds of all PEs on one snapshot, for recorded loads, for the rounds of periodic load balancing, and as
// the expected result in tests of the distributed run: both give the same placement.
//
// The simulation gives a PE no more than it would know. Of an object on another PE it believes what was true before the first
// round. Of an object that it gave away it knows only that the object is elsewhere.
//
// A round never raises the longer time of a pair. The maximum therefore never rises. A sweep in which no object moved ends the
// simulation early, because later sweeps would repeat it. A distributed run always runs kMaxSweeps.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "balance/distributed_strategy.h"
#include "balance/strategies/diffusion_step.h"
#include "balance/strategy.h"
#include "balance/summary.h"

namespace weft::balance {
namespace {

constexpr int kMaxSweeps = 4;

// The edges of each object: one array, in which those of an object are adjacent.
class Neighbourhoods {
 public:
  struct End {
    std::uint32_t other;
    std::uint64_t bytes;
  };

  explicit Neighbourhoods(const Snapshot& snapshot) : begin_(snapshot.objects.size() + 1) {
    for (const CommunicationEdge& edge : snapshot.edges) {
      ++begin_[edge.from];
      ++begin_[edge.to];
    }
    std::size_t sum = 0;
    for (std::size_t& begin : begin_) {
      sum += begin;
      begin = sum;
    }
    ends_.resize(sum);
    // Fills each object's part from its end; begin_ is right afterwards.
    for (const CommunicationEdge& edge : snapshot.edges) {
      ends_[--begin_[edge.from]] = {edge.to, edge.bytes};
      ends_[--begin_[edge.to]] = {edge.from, edge.bytes};
    }
  }

  std::span<const End> of(std::uint32_t object) const {
    return std::span(ends_).subspan(begin_[object], begin_[object + 1] - begin_[object]);
  }

 private:
  std::vector<std::size_t> begin_;
  std::vector<End> ends_;
};

class Simulation {
 public:
  Simulation(const Snapshot& snapshot, double tolerance)
      : snapshot_(snapshot),
        tolerance_(tolerance),
        neighbourhoods_(snapshot),
        placement_(present_placement(snapshot)),
        times_s_(pe_times_s(snapshot, placement_)),
        objects_of_(times_s_.size()) {
    for (std::uint32_t i = 0; i < placement_.size(); ++i) {
      objects_of_[static_cast<std::size_t>(placement_[i])].push_back(i);
    }
  }

  Placement run() && {
    const int rounds = rounds_of_sweep(snapshot_.num_pes);
    for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
      bool moved = false;
      for (int round = 0; round < rounds; ++round) {
        for (int pe = 0; pe < snapshot_.num_pes; ++pe) {
          const auto partner = partner_in_round(pe, round, snapshot_.num_pes);
          if (partner && pe < *partner && exchange(pe, *partner)) moved = true;
        }
      }
      if (!moved) break;
    }
    return std::move(placement_);
  }

 private:
  PeState state(int pe) const { return {pe, times_s_[static_cast<std::size_t>(pe)], snapshot_.speed(pe)}; }

  // One pair's exchange. The PE with the longer time takes the step; both know which one that is. Pairs are disjoint, so their
  // order within a round does not matter. Returns whether an object moved.
  bool exchange(int pe, int partner) {
    const bool gives = state(pe).time_s > state(partner).time_s;
    const PeState own = state(gives ? pe : partner);
    const PeState neighbour = state(gives ? partner : pe);
    // Most pairs are even soon; then no PE has to look at its objects.
    if (load_to_give(own, neighbour, tolerance_) <= 0) return false;
    const std::vector<std::uint64_t> given = choose_objects(own, knowledge_of(own.pe), neighbour, tolerance_);
    for (const std::uint64_t object : given)
      transfer(static_cast<std::uint32_t>(object), own.pe, neighbour.pe);
    std::erase_if(objects_of_[static_cast<std::size_t>(own.pe)],
                  [&](std::uint32_t object) { return placement_[object] != own.pe; });
    return !given.empty();
  }

  void transfer(std::uint32_t object, int from, int to) {
    const double load_s = snapshot_.objects[object].load_s;
    placement_[object] = to;
    times_s_[static_cast<std::size_t>(from)] -= load_s / snapshot_.speed(from);
    times_s_[static_cast<std::size_t>(to)] += load_s / snapshot_.speed(to);
    objects_of_[static_cast<std::size_t>(to)].push_back(object);
  }

  std::vector<OwnObject> knowledge_of(int pe) const {
    const std::vector<std::uint32_t>& own = objects_of_[static_cast<std::size_t>(pe)];
    std::vector<OwnObject> objects;
    objects.reserve(own.size());
    for (const std::uint32_t i : own) {
      OwnObject& object = objects.emplace_back();
      object.object = i;
      object.load_s = snapshot_.objects[i].load_s;
      object.can_move = snapshot_.objects[i].can_move;
      for (const Neighbourhoods::End& end : neighbourhoods_.of(i)) {
        object.edges.push_back({end.other, believed_pe(pe, end.other), end.bytes});
      }
    }
    return objects;
  }

  int believed_pe(int pe, std::uint32_t object) const {
    if (placement_[object] == pe) return pe;
    const int at_first = snapshot_.objects[object].pe;
    return at_first == pe ? kElsewhere : at_first;
  }

  const Snapshot& snapshot_;
  const double tolerance_;
  const Neighbourhoods neighbourhoods_;
  Placement placement_;
  std::vector<double> times_s_;
  std::vector<std::vector<std::uint32_t>> objects_of_;
};

class Diffusion final : public Strategy, public DistributedStrategy {
 public:
  explicit Diffusion(double tolerance) : tolerance_(tolerance) {}

  std::string_view name() const override { return "diffusion"; }
  Placement place(const Snapshot& snapshot) override { return Simulation(snapshot, tolerance_).run(); }
  const DistributedStrategy* distributed() const override { return this; }

  int num_rounds(int num_pes) const override { return kMaxSweeps * rounds_of_sweep(num_pes); }
  std::optional<int> partner(int pe, int round, int num_pes) const override {
    return partner_in_round(pe, round % rounds_of_sweep(num_pes), num_pes);
  }
  bool gives(const PeState& own, const PeState& partner) const override {
    return load_to_give(own, partner, tolerance_) > 0;
  }
  std::vector<std::uint64_t> choose(const PeState& own, const std::vector<OwnObject>& objects,
                                    const PeState& partner) const override {
    return choose_objects(own, objects, partner, tolerance_);
  }

 private:
  double tolerance_;
};

}  // namespace

std::unique_ptr<Strategy> make_diffusion(const StrategyOptions& options) {
  return std::make_unique<Diffusion>(options.tolerance);
}

}  // namespace weft::balance
