// The tree along which broadcasts go down and reductions go up, for any root.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::runtime {

class SpanningTree {
 public:
  // Measured with allreduce of 8 to 64 PEs on two processors, see docs/decisions/collectives.md.
  static constexpr int kArity = 8;

  SpanningTree(int root_pe, int pe, int num_pes)
      : root_pe_(root_pe), num_pes_(num_pes), rank_((pe - root_pe + num_pes) % num_pes) {}

  bool is_root() const { return rank_ == 0; }
  int parent() const { return pe_of((rank_ - 1) / kArity); }
  int num_children() const {
    int first = first_child();
    if (first >= num_pes_) return 0;
    return first + kArity <= num_pes_ ? kArity : num_pes_ - first;
  }
  int child(int which) const { return pe_of(first_child() + which); }
  // This PE and all below it.
  int num_in_subtree() const {
    std::int64_t count = 0;
    std::int64_t first = rank_;
    std::int64_t last = rank_;
    while (first < num_pes_) {
      count += std::min<std::int64_t>(last, num_pes_ - 1) - first + 1;
      first = first * kArity + 1;
      last = last * kArity + kArity;
    }
    return static_cast<int>(count);
  }

 private:
  int first_child() const { return rank_ > (num_pes_ - 1) / kArity ? num_pes_ : rank_ * kArity + 1; }
  int pe_of(int rank) const { return static_cast<int>((std::int64_t{rank} + root_pe_) % num_pes_); }

  int root_pe_;
  int num_pes_;
  int rank_;
};

}  // namespace weft::runtime
