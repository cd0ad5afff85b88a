#include "collective/plan.h"

#include <algorithm>

namespace weft::collective {

namespace {

using Action = Step::Action;

// All-to-all with larger blocks, or between fewer members, sends each block by itself. The limits are MPICH's.
constexpr std::size_t kMostForwardedBytes = 256;
constexpr int kLeastForwarding = 8;

class Planner {
 public:
  Planner(Member member, int root) : member_(member), root_(root) {}

  std::vector<Step> take() { return std::move(steps_); }

  // Dissemination: in each round a member hears of twice as many.
  void barrier() {
    for (int distance = 1; distance < member_.size; distance *= 2, ++round_) {
      add(Action::kSend, right(distance), 0, 0);
      add(Action::kReceive, right(-distance), 0, 0);
    }
  }

  // Down a binomial tree.
  void broadcast() {
    const int reach = reach_of(tree_place());
    if (tree_place() != 0) add_in_round(Action::kReceive, reach, at(tree_place() - reach), 0, 1);
    for (int distance = reach / 2; distance > 0; distance /= 2)
      if (tree_place() + distance < member_.size)
        add_in_round(Action::kSend, distance, at(tree_place() + distance), 0, 1);
  }

  // Up a binomial tree, whose subtrees are ranges of places.
  void reduce() {
    for (int distance = 1; distance < member_.size; distance *= 2) {
      if ((tree_place() & distance) != 0)
        return add_in_round(Action::kSend, distance, at(tree_place() - distance), 0, 1);
      if (tree_place() + distance < member_.size)
        add_in_round(Action::kCombineFromRight, distance, at(tree_place() + distance), 0, 1);
    }
  }
  void reduce_in_order() {
    const int root = root_;
    root_ = 0;
    reduce();
    if (root == 0) return;
    if (member_.place == 0) add_in_round(Action::kSend, 2 * member_.size, root, 0, 1);
    if (member_.place == root) add_in_round(Action::kReceive, 2 * member_.size, 0, 0, 1);
  }

  // Recursive doubling. The first 2 * `extra` members work in pairs, so that a power of two of them takes part.
  void allreduce() {
    int participants = 1;
    while (participants * 2 <= member_.size) participants *= 2;
    const int extra = member_.size - participants;
    const bool has_partner = member_.place < 2 * extra;
    if (has_partner && member_.place % 2 == 0) {
      add_in_round(Action::kSend, member_.size, member_.place + 1, 0, 1);
      return add_in_round(Action::kReceive, 2 * member_.size, member_.place + 1, 0, 1);
    }
    if (has_partner) add_in_round(Action::kCombineFromLeft, member_.size, member_.place - 1, 0, 1);
    const int number = has_partner ? member_.place / 2 : member_.place - extra;
    for (int distance = 1; distance < participants; distance *= 2) {
      const int other = number ^ distance;
      const int peer = other < extra ? 2 * other + 1 : other + extra;
      const bool is_left = other < number;
      add_in_round(Action::kSend, distance, peer, 0, 1);
      add_in_round(is_left ? Action::kCombineFromLeft : Action::kCombineFromRight, distance, peer, 0, 1);
    }
    if (has_partner) add_in_round(Action::kSend, 2 * member_.size, member_.place - 1, 0, 1);
  }

  // Recursive doubling over those that exist: the first block is that of the members that have exchanged so far.
  void scan(bool exclusive) {
    bool has_result = !exclusive;
    for (int distance = 1; distance < member_.size; distance *= 2) {
      const int peer = member_.place ^ distance;
      if (peer >= member_.size) continue;
      add_in_round(Action::kSend, distance, peer, 0, 1);
      if (peer > member_.place) {
        add_in_round(Action::kCombineFromRight, distance, peer, 0, 1);
      } else {
        add_in_round(has_result ? Action::kScanFromLeft : Action::kScanStart, distance, peer, 0, 1);
        has_result = true;
      }
    }
  }

  // Recursive halving: a member gives away the half of the blocks that the other half of the members will have.
  void reduce_scatter() {
    int first = 0;
    for (int half = member_.size / 2; half > 0; half /= 2) {
      const bool is_left = (member_.place & half) == 0;
      add_in_round(Action::kSend, half, member_.place ^ half, is_left ? first + half : first, half);
      if (!is_left) first += half;
      add_in_round(Action::kCombineFromLeft, half, member_.place ^ half, first, half);
    }
  }

  // Each round doubles the number of blocks. Bruck and others, "Efficient Algorithms for All-to-All Communications in Multiport
  // Message-Passing Systems" (1997), also for alltoall().
  void allgather() {
    for (int have = 1; have < member_.size; have *= 2) {
      const int count = std::min(have, member_.size - have);
      add_in_round(Action::kSend, have, right(-have), 0, count);
      add_in_round(Action::kReceive, have, right(have), have, count);
    }
  }

  // In the round of bit b a block travels 2^b places if its number has that bit.
  void alltoall(std::size_t block_bytes) {
    if (member_.size >= kLeastForwarding && size_class_of(block_bytes) == 0) {
      for (int bit = 1; bit < member_.size; bit *= 2) {
        add_in_round(Action::kSend, bit, right(bit), bit, 0);
        steps_.back().is_marked = true;
        add_in_round(Action::kReceive, bit, right(-bit), bit, 0);
        steps_.back().is_marked = true;
      }
      return;
    }
    for (int i = 1; i < member_.size; ++i) add(Action::kSend, right(i), i, 1);
    for (int i = 1; i < member_.size; ++i) add(Action::kReceive, right(-i), i, 1);
  }

  void gather() {
    const int reach = reach_of(tree_place());
    for (int distance = 1; distance < reach && tree_place() + distance < member_.size; distance *= 2)
      add_in_round(Action::kReceive, distance, at(tree_place() + distance), distance, below_child(distance));
    if (tree_place() != 0)
      add_in_round(Action::kSend, reach, at(tree_place() - reach), 0,
                   static_cast<int>(blocks_below(member_, root_)));
  }

  void scatter() {
    const int reach = reach_of(tree_place());
    if (tree_place() != 0)
      add_in_round(Action::kReceive, reach, at(tree_place() - reach), 0,
                   static_cast<int>(blocks_below(member_, root_)));
    for (int distance = reach / 2; distance > 0; distance /= 2)
      if (tree_place() + distance < member_.size)
        add_in_round(Action::kSend, distance, at(tree_place() + distance), distance, below_child(distance));
  }

  // The place in a tree with the root at 0, and what it reaches: the lowest set bit, or the first power of two that is not below the size.
  static int tree_place_of(Member member, int root) {
    return (member.place - root + member.size) % member.size;
  }
  static int reach_of(int tree_place, int size) {
    int reach = 1;
    while (reach < size && (tree_place & reach) == 0) reach *= 2;
    return reach;
  }

 private:
  int tree_place() const { return tree_place_of(member_, root_); }
  int reach_of(int tree_place) const { return reach_of(tree_place, member_.size); }
  int at(int tree_place) const { return (tree_place + root_) % member_.size; }
  int right(int distance) const { return (member_.place + distance + member_.size) % member_.size; }
  int below_child(int distance) const { return std::min(distance, member_.size - tree_place() - distance); }

  void add(Action action, int peer, int first, int count) {
    steps_.push_back({action, false, static_cast<std::uint16_t>(round_), peer,
                      static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)});
  }
  // Rounds of trees and exchanges are told apart by their distance. They come behind those of a barrier.
  void add_in_round(Action action, int distance, int peer, int first, int count) {
    int number = round_;
    for (int rest = distance; rest > 1; rest /= 2) ++number;
    add(action, peer, first, count);
    steps_.back().round = static_cast<std::uint16_t>(number);
  }

  Member member_;
  int root_;
  int round_ = 0;
  std::vector<Step> steps_;
};

}  // namespace

int size_class_of(std::size_t block_bytes) { return block_bytes <= kMostForwardedBytes ? 0 : 1; }

std::size_t blocks_below(Member member, int root) {
  const int tree_place = Planner::tree_place_of(member, root);
  return static_cast<std::size_t>(
      std::min(Planner::reach_of(tree_place, member.size), member.size - tree_place));
}

std::vector<Step> make_plan(Kind kind, Member member, int root, std::size_t block_bytes, bool waits_first) {
  Planner planner(member, root);
  if (waits_first) planner.barrier();
  switch (kind) {
    case Kind::kBarrier:
      planner.barrier();
      break;
    case Kind::kBroadcast:
      planner.broadcast();
      break;
    case Kind::kReduce:
      planner.reduce();
      break;
    case Kind::kReduceInOrder:
      planner.reduce_in_order();
      break;
    case Kind::kAllreduce:
      planner.allreduce();
      break;
    case Kind::kScan:
      planner.scan(false);
      break;
    case Kind::kExclusiveScan:
      planner.scan(true);
      break;
    case Kind::kReduceScatter:
      planner.reduce_scatter();
      break;
    case Kind::kAllgather:
      planner.allgather();
      break;
    case Kind::kAlltoall:
      planner.alltoall(block_bytes);
      break;
    case Kind::kGather:
      planner.gather();
      break;
    case Kind::kScatter:
      planner.scatter();
      break;
  }
  return planner.take();
}

}  // namespace weft::collective
