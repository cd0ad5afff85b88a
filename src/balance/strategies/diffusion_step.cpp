#include "balance/strategies/diffusion_step.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <queue>
#include <unordered_map>
#include <utility>

namespace weft::balance {
namespace {

// How many bits the number of the highest PE has.
int num_bits(int num_pes) { return std::bit_width(static_cast<unsigned>(num_pes - 1)); }

// An object that could be given, and what giving it saves: bytes that would no longer cross between the two PEs, less those
// that newly would.
struct Offer {
  std::int64_t saved_bytes;
  double load_s;
  std::uint64_t object;
  std::size_t position;
  bool operator<(const Offer& other) const {
    if (saved_bytes != other.saved_bytes) return saved_bytes < other.saved_bytes;
    if (load_s != other.load_s) return load_s < other.load_s;
    return object > other.object;
  }
};

class Choice {
 public:
  Choice(const PeState& own, const std::vector<OwnObject>& objects, const PeState& neighbour, double load_s)
      : objects_(objects),
        left_s_(load_s),
        saved_(objects.size()),
        state_(objects.size(), ObjectState::kOwn) {
    for (std::size_t i = 0; i < objects.size(); ++i) positions_.emplace(objects[i].object, i);
    for (std::size_t i = 0; i < objects.size(); ++i) {
      for (const OwnEdge& edge : objects[i].edges) {
        const auto bytes = static_cast<std::int64_t>(edge.bytes);
        if (edge.other == objects[i].object) continue;
        if (edge.believed_pe == neighbour.pe) saved_[i] += bytes;
        if (edge.believed_pe == own.pe) saved_[i] -= bytes;
      }
      if (objects[i].can_move && objects[i].load_s > 0) offer(i);
    }
  }

  std::vector<std::uint64_t> run() && {
    while (!offers_.empty() && left_s_ > 0) {
      const Offer best = offers_.top();
      offers_.pop();
      // An offer is out of date if the object is gone, or has since been offered with more bytes saved.
      if (state_[best.position] != ObjectState::kOwn || saved_[best.position] != best.saved_bytes) continue;
      if (best.load_s <= left_s_) {
        give(best.position);
      } else {
        state_[best.position] = ObjectState::kTooLarge;
      }
    }
    give_last();
    return std::move(given_);
  }

 private:
  enum class ObjectState : std::uint8_t { kOwn, kTooLarge, kGiven };

  void offer(std::size_t position) {
    offers_.push({saved_[position], objects_[position].load_s, objects_[position].object, position});
  }

  void give(std::size_t position) {
    const OwnObject& object = objects_[position];
    state_[position] = ObjectState::kGiven;
    left_s_ -= object.load_s;
    given_.push_back(object.object);
    for (const OwnEdge& edge : object.edges) {
      const auto other = positions_.find(edge.other);
      if (other == positions_.end() || state_[other->second] == ObjectState::kGiven) continue;
      // The edge was inside this PE, and now crosses: the other end saves it by following.
      saved_[other->second] += 2 * static_cast<std::int64_t>(edge.bytes);
      const OwnObject& following = objects_[other->second];
      const bool offered =
          state_[other->second] == ObjectState::kOwn && following.can_move && following.load_s > 0;
      if (offered && edge.bytes > 0) offer(other->second);
    }
  }

  // One object may exceed what is left, if the result is nearer to it than without the object.
  void give_last() {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      if (state_[i] != ObjectState::kTooLarge || objects_[i].load_s >= 2 * left_s_) continue;
      if (!best || objects_[i].load_s < objects_[*best].load_s) best = i;
    }
    if (best) give(*best);
  }

  const std::vector<OwnObject>& objects_;
  double left_s_;
  std::vector<std::int64_t> saved_;
  std::vector<ObjectState> state_;
  std::unordered_map<std::uint64_t, std::size_t> positions_;
  std::priority_queue<Offer> offers_;
  std::vector<std::uint64_t> given_;
};

}  // namespace

int rounds_of_sweep(int num_pes) { return num_pes < 2 ? 0 : num_bits(num_pes) + 1; }

std::optional<int> partner_in_round(int pe, int round, int num_pes) {
  const int bit = num_bits(num_pes) - 1 - round;
  // After the round of bit 0, which pairs each even PE with the next one, each odd PE is paired with the next one.
  const int next = pe % 2 == 0 ? pe - 1 : pe + 1;
  const int partner = bit >= 0 ? pe ^ (1 << bit) : next;
  if (partner < 0 || partner >= num_pes) return std::nullopt;
  return partner;
}

double load_to_give(const PeState& own, const PeState& neighbour, double tolerance) {
  const double difference_s = own.time_s - neighbour.time_s;
  if (!(difference_s > 0)) return 0;
  // own.time_s - load / own.speed == neighbour.time_s + load / neighbour.speed
  const double load_s = difference_s / (1 / own.speed + 1 / neighbour.speed);
  const double equal_s = own.time_s - load_s / own.speed;
  return own.time_s > equal_s * (1 + tolerance) ? load_s : 0;
}

std::vector<std::uint64_t> choose_objects(const PeState& own, const std::vector<OwnObject>& objects,
                                          const PeState& neighbour, double tolerance) {
  const double load_s = load_to_give(own, neighbour, tolerance);
  if (load_s <= 0) return {};
  return Choice(own, objects, neighbour, load_s).run();
}

}  // namespace weft::balance
