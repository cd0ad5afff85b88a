#include "collective/plan.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace weft::collective {

namespace {

using runtime::HostGroups;
using Action = Step::Action;

bool has_root(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kReduce || kind == Kind::kReduceInOrder;
}

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

  // Down a binomial tree. `count`: of blocks.
  void broadcast(int count = 1) {
    const int reach = reach_of(tree_place());
    if (tree_place() != 0) add_in_round(Action::kReceive, reach, at(tree_place() - reach), 0, count);
    for (int distance = reach / 2; distance > 0; distance /= 2)
      if (tree_place() + distance < member_.size)
        add_in_round(Action::kSend, distance, at(tree_place() + distance), 0, count);
  }

  // Up a binomial tree, whose subtrees are ranges of places. What arrives is combined where it lies if it may come from the left.
  void reduce(Action combine, int count = 1) {
    for (int distance = 1; distance < member_.size; distance *= 2) {
      if ((tree_place() & distance) != 0)
        return add_in_round(Action::kSend, distance, at(tree_place() - distance), 0, count);
      if (tree_place() + distance < member_.size)
        add_in_round(combine, distance, at(tree_place() + distance), 0, count);
    }
  }
  void reduce_in_order() {
    const int root = root_;
    root_ = 0;
    reduce(Action::kCombineFromRight);
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

  // Each round doubles how many places to the left the block is of. Hillis and Steele, "Data Parallel Algorithms" (1986).
  void scan() { add_places_from(0); }
  // The same with the blocks of the members to the left. The first member has none to give.
  void exclusive_scan() {
    if (member_.place + 1 < member_.size) add(Action::kSend, member_.place + 1, 0, 1);
    if (member_.place > 0) add(Action::kReceive, member_.place - 1, 0, 1);
    ++round_;
    if (member_.place > 0) add_places_from(1);
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
      add_blocks(Action::kSend, have, right(-have), 0, count);
      add_blocks(Action::kReceive, have, right(have), have, count);
    }
  }

  // In the round of bit b a block travels 2^b places if its number has that bit.
  void alltoall() {
    for (int bit = 1; bit < member_.size; bit *= 2) {
      add_in_round(Action::kSend, bit, right(bit), bit, 0);
      steps_.back().is_marked = true;
      add_in_round(Action::kReceive, bit, right(-bit), bit, 0);
      steps_.back().is_marked = true;
    }
  }
  void separate_alltoall() {
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

  // --- Form::kDirect

  void direct_broadcast() {
    if (member_.place == root_) {
      for (int i = 1; i < member_.size; ++i) add(Action::kSend, right(i), 0, 1);
    } else {
      add(Action::kReceive, root_, 0, 1);
    }
  }
  // The own block becomes the combination of all members' blocks with that number.
  void direct_reduce_scatter(bool in_order) {
    for (int i = 1; i < member_.size; ++i) add(Action::kSendInput, right(i), right(i), 1);
    add(Action::kTakeInput, member_.place, member_.place, 1);
    if (in_order) {
      for (int place = member_.place - 1; place >= 0; --place)
        add(Action::kCombineFromLeft, place, member_.place, 1);
      for (int place = member_.place + 1; place < member_.size; ++place)
        add(Action::kCombineFromRight, place, member_.place, 1);
    } else {
      for (int i = 1; i < member_.size; ++i) add(Action::kCombineFromLeft, right(-i), member_.place, 1);
    }
    ++round_;
  }
  void direct_reduce(bool in_order) {
    direct_reduce_scatter(in_order);
    if (member_.place != root_) return add(Action::kSend, root_, member_.place, 1);
    for (int i = 1; i < member_.size; ++i) add(Action::kReceive, right(-i), right(-i), 1);
  }
  void direct_allgather() {
    for (int i = 1; i < member_.size; ++i) add(Action::kSend, right(i), member_.place, 1);
    for (int i = 1; i < member_.size; ++i) add(Action::kReceive, right(-i), right(-i), 1);
  }
  void direct_alltoall() {
    for (int i = 1; i < member_.size; ++i) add(Action::kSendInput, right(i), right(i), 1);
    add(Action::kTakeInput, member_.place, member_.place, 1);
    for (int i = 1; i < member_.size; ++i) add(Action::kReceive, right(-i), right(-i), 1);
  }
  // Each member makes all results of its own block, place by place, and gives each place its one. It sends blocks to itself too, because
  // its block is used for the combination.
  void direct_scan(bool exclusive) {
    const bool is_needed = !exclusive || member_.place + 1 < member_.size;
    for (int i = 0; i < member_.size && is_needed; ++i) add(Action::kSendInput, right(i), right(i), 1);
    const int results = round_ + 1;
    for (int place = 0; place < member_.size; ++place) {
      if (exclusive && place > 0) add_result(results, place);
      if (exclusive && place + 1 == member_.size) break;
      add(place == 0 ? Action::kReceive : Action::kCombineFromRight, place, member_.place, 1);
      if (!exclusive) add_result(results, place);
    }
    round_ = results;
    // The first place has no result of an exclusive scan.
    for (int place = 0; place < member_.size && (!exclusive || member_.place > 0); ++place)
      add(Action::kReceive, place, place, 1);
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

  // --- Form::kLeaders. After enter_...() the functions above plan for the members of this one's host, or for
  // the leaders, as for a group.

  void enter_host(const HostGroups& hosts, Member member, int root) {
    const int host = hosts.host_of(member.place);
    enter({hosts.index_of(member.place), hosts.num_on(host)}, hosts.index_of(leader(hosts, host, root)));
    for (int index = 0; index < member_.size; ++index) places_.push_back(hosts.member(host, index));
  }
  // Returns false if this member is no leader.
  bool enter_leaders(const HostGroups& hosts, Member member, int root) {
    const int host = hosts.host_of(member.place);
    enter({host, hosts.num_hosts()}, hosts.host_of(root));
    for (int other = 0; other < member_.size; ++other) places_.push_back(leader(hosts, other, root));
    leading_ = &hosts;
    return leader(hosts, host, root) == member.place;
  }
  // The own block, and those of this member's subtree, are behind `before` others.
  void gather_behind(int before) {
    const std::size_t begin = steps_.size();
    gather();
    for (std::size_t i = begin; i < steps_.size(); ++i) steps_[i].first += static_cast<std::uint32_t>(before);
  }

 private:
  // Each part has rounds of its own: more than a tree or an exchange takes, and as many for second ranges, see
  // add_blocks().
  static constexpr int kRoundsOfPart = 128;

  // The member with the root's index, so the root itself on its host: as in SpanningTree.
  static int leader(const HostGroups& hosts, int host, int root) {
    return hosts.member(host, hosts.index_of(root) % hosts.num_on(host));
  }
  void enter(Member member, int root) {
    member_ = member;
    root_ = root;
    places_.clear();
    leading_ = nullptr;
    round_ = kRoundsOfPart * num_parts_++;
  }

  int tree_place() const { return tree_place_of(member_, root_); }
  int reach_of(int tree_place) const { return reach_of(tree_place, member_.size); }
  int at(int tree_place) const { return (tree_place + root_) % member_.size; }
  int right(int distance) const { return (member_.place + distance + member_.size) % member_.size; }
  int below_child(int distance) const { return std::min(distance, member_.size - tree_place() - distance); }

  // A scan of the members from `first` on.
  void add_places_from(int first) {
    for (int distance = 1; distance < member_.size - first; distance *= 2) {
      if (member_.place + distance < member_.size)
        add_in_round(Action::kSend, distance, member_.place + distance, 0, 1);
      if (member_.place - distance >= first)
        add_in_round(Action::kCombineFromLeft, distance, member_.place - distance, 0, 1);
    }
  }
  void add_result(int round, int place) {
    add(Action::kSend, place, member_.place, 1);
    steps_.back().round = static_cast<std::uint16_t>(round);
  }

  // The blocks of `count` members from the one `first` places to the right on. The blocks of a leader are those
  // of its host; the last host is followed by the first one, so they may be two ranges.
  void add_blocks(Action action, int distance, int peer, int first, int count) {
    if (leading_ == nullptr) return add_in_round(action, distance, peer, first, count);
    const int begin = (member_.place + first) % member_.size;
    const int end = std::min(begin + count, member_.size);
    add_hosts(action, distance, peer, begin, end);
    if (const int rest = begin + count - end; rest > 0) {
      add_hosts(action, distance, peer, 0, rest);
      steps_.back().round += kRoundsOfPart / 2;
    }
  }
  void add_hosts(Action action, int distance, int peer, int begin, int end) {
    const int first = leading_->first(begin);
    add_in_round(action, distance, peer, first, leading_->first(end) - first);
  }

  void add(Action action, int peer, int first, int count) {
    const int place = places_.empty() ? peer : places_[static_cast<std::size_t>(peer)];
    steps_.push_back({action, false, static_cast<std::uint16_t>(round_), place,
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
  std::vector<int> places_;  // of those that take part, if not all do
  const HostGroups* leading_ = nullptr;
  int num_parts_ = 0;
  int round_ = 0;
  std::vector<Step> steps_;
};

}  // namespace

int place_of_block(Form form, Member member, const HostGroups* hosts, int block) {
  if (form == Form::kDirect) return block;
  return form == Form::kLeaders ? hosts->member_at(block) : (member.place + block) % member.size;
}

std::size_t blocks_below(Member member, int root) {
  const int tree_place = Planner::tree_place_of(member, root);
  return static_cast<std::size_t>(
      std::min(Planner::reach_of(tree_place, member.size), member.size - tree_place));
}

namespace {

void plan_few_messages(Planner& planner, Kind kind) {
  switch (kind) {
    case Kind::kBarrier:
      return planner.barrier();
    case Kind::kBroadcast:
      return planner.broadcast();
    case Kind::kReduce:
      return planner.reduce(Action::kCombineFromLeft);
    case Kind::kReduceInOrder:
      return planner.reduce_in_order();
    case Kind::kAllreduce:
      return planner.allreduce();
    case Kind::kScan:
      return planner.scan();
    case Kind::kExclusiveScan:
      return planner.exclusive_scan();
    case Kind::kReduceScatter:
      return planner.reduce_scatter();
    case Kind::kAllgather:
      return planner.allgather();
    case Kind::kAlltoall:
      return planner.alltoall();
    case Kind::kGather:
      return planner.gather();
    case Kind::kScatter:
      return planner.scatter();
  }
}

void plan_directly(Planner& planner, Kind kind, bool in_order) {
  switch (kind) {
    case Kind::kBroadcast:
      return planner.direct_broadcast();
    case Kind::kReduce:
    case Kind::kReduceInOrder:
      return planner.direct_reduce(in_order);
    case Kind::kAllreduce:
      planner.direct_reduce_scatter(in_order);
      return planner.direct_allgather();
    case Kind::kScan:
      return planner.direct_scan(false);
    case Kind::kExclusiveScan:
      return planner.direct_scan(true);
    case Kind::kReduceScatter:
      return planner.direct_reduce_scatter(in_order);
    case Kind::kAllgather:
      return planner.direct_allgather();
    case Kind::kAlltoall:
      return planner.direct_alltoall();
    case Kind::kBarrier:
    case Kind::kGather:
    case Kind::kScatter:
      assert(false && "there is no such form");
  }
}

// Up to the leaders, between them, and down from them. Kinds without a root may have any.
void plan_with_leaders(Planner& planner, Kind kind, Member member, int any_root, const HostGroups& hosts) {
  const int root = has_root(kind) ? any_root : 0;
  const int num_blocks = kind == Kind::kBarrier ? 0 : kind == Kind::kAllgather ? member.size : 1;
  planner.enter_host(hosts, member, root);
  if (kind == Kind::kAllgather)
    planner.gather_behind(hosts.first(hosts.host_of(member.place)) + hosts.index_of(member.place));
  else if (kind == Kind::kReduceInOrder)
    planner.reduce_in_order();
  else if (kind != Kind::kBroadcast)
    planner.reduce(kind == Kind::kReduce ? Action::kCombineFromLeft : Action::kCombineFromRight, num_blocks);
  if (planner.enter_leaders(hosts, member, root)) plan_few_messages(planner, kind);
  planner.enter_host(hosts, member, root);
  if (kind != Kind::kReduce && kind != Kind::kReduceInOrder) planner.broadcast(num_blocks);
}

}  // namespace

std::vector<Step> make_plan(const PlanChoice& choice, Member member, const HostGroups* hosts) {
  Planner planner(member, choice.root);
  const bool needs_order =
      choice.kind == Kind::kReduceInOrder || (choice.kind == Kind::kAllreduce && choice.in_order);
  if (choice.form == Form::kLeaders && (!needs_order || hosts->are_consecutive())) {
    if (choice.waits_first) plan_with_leaders(planner, Kind::kBarrier, member, 0, *hosts);
    plan_with_leaders(planner, choice.kind, member, choice.root, *hosts);
    return planner.take();
  }
  if (choice.waits_first) planner.barrier();
  switch (choice.form) {
    case Form::kFewMessages:
    case Form::kLeaders:
      plan_few_messages(planner, choice.kind);
      break;
    case Form::kSeparate:
      planner.separate_alltoall();
      break;
    case Form::kDirect:
      plan_directly(planner, choice.kind, choice.in_order);
      break;
  }
  return planner.take();
}

}  // namespace weft::collective
