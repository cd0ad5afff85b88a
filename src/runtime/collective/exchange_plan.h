// Recursive doubling: after log2(n) exchanges every PE has what all PEs gave.
//
// On one host: in round r a PE exchanges with the PE whose number differs in bit r. If the number of PEs is no power of two,
// each PE beyond the largest power gives its part to a PE below it before the rounds, and gets the result from it afterwards.
// The steps are: 0, that giving; 1 to num_steps() - 2, the rounds; num_steps() - 1, that getting.
//
// On several hosts the members of each host do so among themselves. Then the first members of the hosts do so, for all; and
// then each of them gives the result to the others of its host, down a binomial tree. So each part crosses a link once.
#pragma once

#include <bit>

#include "runtime/tree/host_groups.h"

namespace weft::runtime {

// The exchanges of places 0 to `size` - 1 with one another.
class PairPlan {
 public:
  PairPlan(int place, int size)
      : place_(place),
        num_inner_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))),
        num_outer_(size - num_inner_) {}

  int num_steps() const { return std::countr_zero(static_cast<unsigned>(num_inner_)) + 2; }
  bool is_last(int step) const { return step == num_steps() - 1; }
  // -1 if the place has no part in the step.
  int peer(int step) const {
    if (step > 0 && !is_last(step)) return is_outer() ? -1 : place_ ^ (1 << (step - 1));
    if (is_outer()) return place_ - num_inner_;
    return place_ < num_outer_ ? place_ + num_inner_ : -1;
  }
  bool sends(int step) const { return step == 0 ? is_outer() : !is_last(step) || !is_outer(); }
  bool receives(int step) const { return step == 0 ? !is_outer() : !is_last(step) || is_outer(); }

 private:
  bool is_outer() const { return place_ >= num_inner_; }

  int place_;
  int num_inner_;
  int num_outer_;
};

class ExchangePlan {
 public:
  static constexpr int kMaxSteps = 97;

  // `hosts`: of the PEs 0 to `num_pes` - 1; null if hosts make no difference. It must outlive the plan.
  ExchangePlan(int pe, int num_pes, const HostGroups* hosts = nullptr)
      : pe_(pe), all_(pe, num_pes), hosts_(hosts) {}

  // Whether in each step that a PE has a part in it sends and receives, or has received before: so a part that comes reaches
  // every PE, also those that would not begin by themselves.
  static bool reaches_all(int num_pes, const HostGroups* hosts);

  int num_steps() const {
    if (hosts_ != nullptr) [[unlikely]]
      return num_steps_with_hosts();
    return all_.num_steps();
  }
  // The other PE of the step, -1 if this PE has no part in it.
  int peer(int step) const {
    if (hosts_ != nullptr) [[unlikely]]
      return with_hosts(step).peer;
    return all_.peer(step);
  }
  // REQUIRES: peer(step) != -1.
  bool sends(int step) const {
    if (hosts_ != nullptr) [[unlikely]]
      return with_hosts(step).sends;
    return all_.sends(step);
  }
  bool receives(int step) const {
    if (hosts_ != nullptr) [[unlikely]]
      return with_hosts(step).receives;
    return all_.receives(step);
  }
  // Whether what this PE receives in the step replaces its value, because the received value includes this PE's contribution.
  bool replaces(int step) const {
    if (hosts_ != nullptr) [[unlikely]]
      return with_hosts(step).replaces;
    return all_.is_last(step);
  }

 private:
  struct Step {
    int peer = -1;
    bool sends = false;
    bool receives = false;
    bool replaces = false;
  };

  // --- In exchange_plan.cpp

  static Step of_pairs(const PairPlan& plan, int step);
  int num_steps_with_hosts() const;
  Step with_hosts(int step) const;
  Step on_way_down(int bit) const;

  int pe_;
  PairPlan all_;
  const HostGroups* hosts_;
};

}  // namespace weft::runtime
