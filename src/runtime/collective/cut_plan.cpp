#include "runtime/collective/cut_plan.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace weft::runtime {

namespace {

int floor_power(int number) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(number))); }

// One host or several.
struct Layout {
  int num_pes;
  const HostGroups* hosts;

  int num_hosts() const { return hosts == nullptr ? 1 : hosts->num_hosts(); }
  int host_of(int pe) const { return hosts == nullptr ? 0 : hosts->host_of(pe); }
  int index_of(int pe) const { return hosts == nullptr ? pe : hosts->index_of(pe); }
  int num_on(int host) const { return hosts == nullptr ? num_pes : hosts->num_on(host); }
  int most_on_a_host() const { return hosts == nullptr ? num_pes : hosts->most_on_a_host(); }
  int member(int host, int index) const { return hosts == nullptr ? index : hosts->member(host, index); }
  // The number of members of each host that have a part of their own: a power of two.
  int num_parts() const {
    int fewest = most_on_a_host();
    for (int host = 0; host < num_hosts(); ++host) fewest = std::min(fewest, num_on(host));
    return floor_power(fewest);
  }
};

class Planner {
 public:
  Planner(int pe, const Layout& layout, std::size_t num_elements)
      : layout_(layout),
        host_(layout.host_of(pe)),
        index_(layout.index_of(pe)),
        inner_(floor_power(layout.num_on(host_))),
        mine_{0, num_elements} {}

  std::vector<CutStep> plan() {
    const int num_parts = layout_.num_parts();
    const int most = floor_power(layout_.most_on_a_host());
    const int outer = layout_.num_on(host_) - inner_;
    gather_outer(member(index_ - inner_), index_ >= inner_, member(index_ + inner_), index_ < outer);
    for (int bit = 1; bit < num_parts; bit *= 2) on_host(bit, &Planner::halve);
    for (int bit = num_parts; bit < most; bit *= 2) give_up(bit, num_parts);
    between_hosts(index_ < num_parts);
    for (int bit = num_parts; bit < most; bit *= 2) give_down(bit);
    for (int bit = num_parts / 2; bit > 0; bit /= 2) on_host(bit, &Planner::join);
    spread_outer(member(index_ - inner_), index_ >= inner_, member(index_ + inner_), index_ < outer);
    return std::move(steps_);
  }

 private:
  using Round = void (Planner::*)(int peer, bool peer_is_higher);

  // Not a PE if the host has no such member.
  int member(int index) const {
    return index >= 0 && index < layout_.num_on(host_) ? layout_.member(host_, index) : -1;
  }

  // Among the inner members of this PE's host.
  void on_host(int bit, Round round) {
    if (index_ < inner_ && bit < inner_) (this->*round)(member(index_ ^ bit), (index_ & bit) == 0);
    ++number_;
  }

  void between_hosts(bool takes_part) {
    const int inner = floor_power(layout_.num_hosts());
    const int outer = layout_.num_hosts() - inner;
    const bool is_outer = takes_part && host_ >= inner;
    const bool has_outer = takes_part && host_ < outer;
    const int below = is_outer ? layout_.member(host_ - inner, index_) : -1;
    const int above = has_outer ? layout_.member(host_ + inner, index_) : -1;
    const auto in_round = [&](int bit, Round round) {
      if (takes_part && !is_outer) (this->*round)(layout_.member(host_ ^ bit, index_), (host_ & bit) == 0);
      ++number_;
    };
    gather_outer(below, is_outer, above, has_outer);
    for (int bit = 1; bit < inner; bit *= 2) in_round(bit, &Planner::halve);
    for (int bit = inner / 2; bit > 0; bit /= 2) in_round(bit, &Planner::join);
    spread_outer(below, is_outer, above, has_outer);
  }

  void gather_outer(int below, bool is_outer, int above, bool has_outer) {
    if (is_outer) add({.peer = below, .sent = mine_});
    if (has_outer) add({.peer = above, .received = mine_, .merges = true});
    ++number_;
  }
  void spread_outer(int below, bool is_outer, int above, bool has_outer) {
    if (is_outer) add({.peer = below, .received = mine_});
    if (has_outer) add({.peer = above, .sent = mine_});
    ++number_;
  }
  void halve(int peer, bool peer_is_higher) {
    const ElementRange lower{mine_.first, mine_.count / 2};
    const ElementRange upper{lower.first + lower.count, mine_.count - lower.count};
    const ElementRange kept = peer_is_higher ? lower : upper;
    add({.peer = peer,
         .sent = peer_is_higher ? upper : lower,
         .received = kept,
         .merges = true,
         .in_front = !peer_is_higher});
    before_halving_.push_back(mine_);
    mine_ = kept;
  }
  void join(int peer, bool peer_is_higher) {
    const ElementRange both = before_halving_.back();
    before_halving_.pop_back();
    const std::size_t first = peer_is_higher ? mine_.first + mine_.count : both.first;
    add({.peer = peer, .sent = mine_, .received = {first, both.count - mine_.count}});
    mine_ = both;
  }
  // Up a binomial tree over the members that have the same part, to those below `num_parts`.
  void give_up(int bit, int num_parts) {
    if (index_ < inner_ && bit < inner_ && (index_ & (bit - 1) & ~(num_parts - 1)) == 0) {
      if ((index_ & bit) != 0)
        add({.peer = member(index_ - bit), .sent = mine_});
      else
        add({.peer = member(index_ + bit), .received = mine_, .merges = true});
    }
    ++number_;
  }
  // From the members below `bit` to those from there on.
  void give_down(int bit) {
    if (index_ < bit && bit < inner_) add({.peer = member(index_ + bit), .sent = mine_});
    if (index_ >= bit && index_ < 2 * bit && index_ < inner_)
      add({.peer = member(index_ - bit), .received = mine_});
    ++number_;
  }

  void add(CutStep step) {
    step.number = number_;
    if (step.sent.count + step.received.count > 0) steps_.push_back(step);
  }

  Layout layout_;
  int host_;
  int index_;
  int inner_;  // members of this PE's host, a power of two; the others only give and get
  ElementRange mine_;
  std::vector<ElementRange> before_halving_;
  int number_ = 0;
  std::vector<CutStep> steps_;
};

}  // namespace

std::vector<CutStep> plan_cut(int pe, int num_pes, const HostGroups* hosts, std::size_t num_elements) {
  return Planner(pe, {num_pes, hosts}, num_elements).plan();
}

}  // namespace weft::runtime
