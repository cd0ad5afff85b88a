#include "balance/distributed_decision.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "weft/balance/snapshot.h"

#include "base/format.h"

namespace weft::balance {

using base::Status;

namespace {

// The times of PEs are sums of loads. Rounding may make one a little less than 0.
constexpr double kMostTimeS = 1e30;

bool is_load_of_object(double load_s) { return load_s >= 0 && load_s <= kMaxLoadS; }

}  // namespace

DistributedDecision::DistributedDecision(const DistributedStrategy& strategy, int pe, int num_pes,
                                         std::uint64_t num_objects)
    : strategy_(strategy),
      pe_(pe),
      num_pes_(num_pes),
      num_objects_(num_objects),
      num_rounds_(static_cast<std::uint64_t>(strategy.num_rounds(num_pes))) {}

// --- Before the first round

Status DistributedDecision::add_object(std::uint64_t object, double load_s, bool can_move) {
  const GivenObject description{object, load_s, static_cast<std::uint64_t>(pe_), 0};
  if (Status status = check_given(description); !status.ok()) return status;
  positions_.emplace(object, owned_.size());
  owned_.push_back({description, can_move, {}});
  return {};
}

Status DistributedDecision::add_edge(std::uint64_t object, std::uint64_t other, int other_origin,
                                     std::uint64_t bytes) {
  const auto found = positions_.find(object);
  if (found == positions_.end()) return invalid(base::format("object {} is not on PE {}", object, pe_));
  // A PE knows its own objects before the first round.
  if ((other_origin == pe_) != positions_.contains(other)) {
    return invalid(base::format("object {} is said to be on PE {}", other, other_origin));
  }
  return add_edge_to(owned_[found->second], {other, static_cast<std::uint64_t>(other_origin), bytes});
}

Status DistributedDecision::add_edge_to(Owned& owned, const GivenEdge& edge) {
  if (edge.other >= num_objects_ || edge.other_origin >= static_cast<std::uint64_t>(num_pes_)) {
    return invalid(base::format("object {} talks to object {} of {}, on PE {}", owned.description.object,
                                edge.other, num_objects_, edge.other_origin));
  }
  // Strategies count a byte at both ends, and with a sign.
  if (edge.bytes > kMaxEdgeBytes - edge_bytes_) {
    return invalid(base::format("object {} talks to object {}: {} bytes, and the sum exceeds 2^62",
                                owned.description.object, edge.other, edge.bytes));
  }
  edge_bytes_ += edge.bytes;
  owned.edges.push_back(edge);
  return {};
}

Status DistributedDecision::begin(double background_s, double speed) {
  if (!is_load_of_object(background_s) || !(speed >= kMinSpeed && speed <= kMaxSpeed)) {
    return invalid(base::format("a background load of {} s and a speed of {}", background_s, speed));
  }
  speed_ = speed;
  time_s_ = background_s;
  for (const Owned& owned : owned_) time_s_ += owned.description.load_s / speed_;
  time_before_s_ = time_s_;
  has_begun_ = true;
  return {};
}

// --- Messages

Status DistributedDecision::check_round(int from_pe, std::uint64_t round) const {
  if (round < round_ || round >= num_rounds_) {
    return invalid(
        base::format("it meets this PE in round {} of {}, and {} are over here", round, num_rounds_, round_));
  }
  if (strategy_.partner(pe_, static_cast<int>(round), num_pes_) != from_pe) {
    return invalid(base::format("it is not the partner of PE {} in round {}", pe_, round));
  }
  return {};
}

Status DistributedDecision::on_state(int from_pe, std::uint64_t round, double time_s, double speed) {
  if (Status status = check_round(from_pe, round); !status.ok()) return status;
  if (!(std::abs(time_s) <= kMostTimeS) || !(speed >= kMinSpeed && speed <= kMaxSpeed)) {
    return invalid(base::format("it takes {} s and has speed {}", time_s, speed));
  }
  if (states_.try_emplace(round, PeState{from_pe, time_s, speed}).second) return {};
  return invalid(base::format("it tells its time in round {} twice", round));
}

Status DistributedDecision::on_proposal(int from_pe, std::uint64_t round, TransferProposal proposal) {
  if (Status status = check_round(from_pe, round); !status.ok()) return status;
  if (proposals_.try_emplace(round, std::move(proposal)).second) return {};
  return invalid(base::format("it gives in round {} twice", round));
}

// --- Rounds

void DistributedDecision::next_round() {
  states_.erase(round_);
  has_told_ = false;
  ++round_;
}

base::Result<std::vector<PairMessage>> DistributedDecision::advance() {
  std::vector<PairMessage> to_send;
  while (round_ < num_rounds_) {
    const std::optional<int> met = partner();
    if (!met) {
      next_round();
      continue;
    }
    if (!has_told_) to_send.push_back({*met, round_, own_state(), std::nullopt});
    has_told_ = true;
    const auto state = states_.find(round_);
    if (state == states_.end()) break;
    auto is_over = finish_round(state->second, to_send);
    if (!is_over.ok()) return is_over.status();
    if (!*is_over) break;
    next_round();
  }
  return to_send;
}

base::Result<bool> DistributedDecision::finish_round(const PeState& partner,
                                                     std::vector<PairMessage>& to_send) {
  auto proposal = proposals_.extract(round_);
  if (!strategy_.gives(partner, own_state())) {
    if (!proposal.empty()) {
      return invalid(base::format("PE {} gives objects in round {}, and has not more to do than PE {}",
                                  partner.pe, round_, pe_));
    }
    if (strategy_.gives(own_state(), partner)) {
      to_send.push_back({partner.pe, round_, {}, give(partner)});
    }
    return true;
  }
  if (proposal.empty()) return false;
  if (Status status = accept(std::move(proposal.mapped())); !status.ok()) return status;
  return true;
}

std::vector<OwnObject> DistributedDecision::knowledge() const {
  std::vector<OwnObject> objects;
  objects.reserve(owned_.size());
  for (const Owned& owned : owned_) {
    OwnObject& object = objects.emplace_back();
    object.object = owned.description.object;
    object.load_s = owned.description.load_s;
    object.can_move = owned.can_move;
    object.edges.reserve(owned.edges.size());
    for (const GivenEdge& edge : owned.edges) {
      const auto origin = static_cast<int>(edge.other_origin);
      // An object of another PE is believed to be where it was before the first round.
      const int believed = positions_.contains(edge.other) ? pe_ : origin == pe_ ? kElsewhere : origin;
      object.edges.push_back({edge.other, believed, edge.bytes});
    }
  }
  return objects;
}

TransferProposal DistributedDecision::give(const PeState& partner) {
  TransferProposal proposal;
  for (const std::uint64_t object : strategy_.choose(own_state(), knowledge(), partner)) {
    const auto found = positions_.find(object);
    if (found == positions_.end() || !owned_[found->second].can_move) continue;
    Owned& owned = owned_[found->second];
    positions_.erase(found);
    owned.description.num_edges = owned.edges.size();
    time_s_ -= owned.description.load_s / speed_;
    proposal.objects.push_back(owned.description);
    for (const GivenEdge& edge : owned.edges) {
      proposal.edges.push_back(edge);
      edge_bytes_ -= edge.bytes;
    }
    if (static_cast<int>(owned.description.origin) == pe_) away_.insert(object);
  }
  if (proposal.objects.empty()) return proposal;
  // The others keep their order: choices depend on it.
  std::erase_if(owned_,
                [this](const Owned& owned) { return !positions_.contains(owned.description.object); });
  for (std::size_t i = 0; i < owned_.size(); ++i) positions_[owned_[i].description.object] = i;
  return proposal;
}

Status DistributedDecision::check_given(const GivenObject& given) const {
  if (given.object >= num_objects_ || given.origin >= static_cast<std::uint64_t>(num_pes_)) {
    return invalid(base::format("object {} of {} is on PE {}", given.object, num_objects_, given.origin));
  }
  if (!is_load_of_object(given.load_s)) {
    return invalid(base::format("object {} has a load of {} s; expected 0 to {} s", given.object,
                                given.load_s, kMaxLoadS));
  }
  if (positions_.contains(given.object)) {
    return invalid(base::format("object {} comes to PE {}, which has it", given.object, pe_));
  }
  return {};
}

Status DistributedDecision::accept(TransferProposal proposal) {
  std::size_t next = 0;  // in proposal.edges
  for (const GivenObject& given : proposal.objects) {
    if (Status status = check_given(given); !status.ok()) return status;
    if (given.num_edges > proposal.edges.size() - next) {
      return invalid(base::format("object {} comes with {} edges, and {} are there", given.object,
                                  given.num_edges, proposal.edges.size() - next));
    }
    const bool comes_back = static_cast<int>(given.origin) == pe_;
    if (comes_back && away_.erase(given.object) == 0) {
      return invalid(
          base::format("object {} comes back to PE {}, which has not given it", given.object, pe_));
    }
    Owned owned{given, true, {}};
    owned.edges.reserve(given.num_edges);
    for (std::uint64_t i = 0; i < given.num_edges; ++i) {
      if (Status status = add_edge_to(owned, proposal.edges[next++]); !status.ok()) return status;
    }
    time_s_ += given.load_s / speed_;
    positions_.emplace(given.object, owned_.size());
    owned_.push_back(std::move(owned));
  }
  if (next == proposal.edges.size()) return {};
  return invalid(base::format("{} edges come with its objects, which have {}", proposal.edges.size(), next));
}

// --- After the last round

std::vector<Arrivals> DistributedDecision::arrivals() const {
  std::map<std::uint64_t, std::vector<std::uint64_t>> of_origin;
  for (const Owned& owned : owned_) {
    if (static_cast<int>(owned.description.origin) == pe_) continue;
    of_origin[owned.description.origin].push_back(owned.description.object);
  }
  std::vector<Arrivals> all;
  for (auto& [origin, objects] : of_origin) {
    std::ranges::sort(objects);
    all.push_back({static_cast<int>(origin), std::move(objects)});
  }
  return all;
}

std::uint64_t DistributedDecision::num_arrivals() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      owned_, [this](const Owned& owned) { return static_cast<int>(owned.description.origin) != pe_; }));
}

Status DistributedDecision::take(int by_pe, std::uint64_t object) {
  if (by_pe >= 0 && by_pe < num_pes_ && by_pe != pe_ && away_.erase(object) != 0) return {};
  return invalid(base::format("PE {} takes object {}, which is not away from PE {}", by_pe, object, pe_));
}

}  // namespace weft::balance
