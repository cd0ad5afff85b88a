// Recursive doubling: after log2(n) exchanges every PE has what all PEs gave.
//
// In round r a PE exchanges with the PE whose number differs in bit r. If the number of PEs is no power of two, each PE
// beyond the largest power gives its part to a PE below it before the rounds, and gets the result from it afterwards.
// The steps are: 0, that giving; 1 to num_steps() - 2, the rounds; num_steps() - 1, that getting. The PE that gives in
// step 0 is the one that gets in the last step.
#pragma once

#include <bit>

namespace weft::runtime {

class ExchangePlan {
 public:
  static constexpr int kMaxSteps = 33;

  ExchangePlan(int pe, int num_pes)
      : pe_(pe),
        num_inner_(static_cast<int>(std::bit_floor(static_cast<unsigned>(num_pes)))),
        num_outer_(num_pes - num_inner_) {}

  int num_steps() const { return std::countr_zero(static_cast<unsigned>(num_inner_)) + 2; }
  bool is_last(int step) const { return step == num_steps() - 1; }

  // The other PE of the step, -1 if this PE has no part in it.
  int peer(int step) const {
    if (step > 0 && !is_last(step)) return is_outer() ? -1 : pe_ ^ (1 << (step - 1));
    if (is_outer()) return pe_ - num_inner_;
    return pe_ < num_outer_ ? pe_ + num_inner_ : -1;
  }
  // REQUIRES: peer(step) != -1.
  bool sends(int step) const { return step == 0 ? is_outer() : !is_last(step) || !is_outer(); }
  bool receives(int step) const { return step == 0 ? !is_outer() : !is_last(step) || is_outer(); }

 private:
  bool is_outer() const { return pe_ >= num_inner_; }

  int pe_;
  int num_inner_;
  int num_outer_;
};

}  // namespace weft::runtime
