// The tree along which broadcasts go down and reductions go up, for any root.
//
// On one host it is a complete tree. On several hosts the members of each host form such a tree under one of them, its leader,
// and the leaders form one: so a broadcast comes to each host once, and one part of a reduction leaves it. The leader of the
// root's host is the root.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/tree/host_groups.h"

namespace weft::runtime {

// A complete tree over ranks 0 to `size` - 1; 0 is the root.
struct CompleteTree {
  // Measured with allreduce of 8 to 64 PEs on two processors, see docs/decisions/collectives.md.
  static constexpr int kArity = 8;

  int rank;
  int size;

  int parent() const { return (rank - 1) / kArity; }
  int first_child() const { return rank > (size - 1) / kArity ? size : rank * kArity + 1; }
  int num_children() const {
    const int first = first_child();
    if (first >= size) return 0;
    return first + kArity <= size ? kArity : size - first;
  }
  // Calls function(first, last) for each level of the ranks below `rank`, itself included.
  template <class Function>
  void for_levels(Function function) const {
    std::int64_t first = rank;
    std::int64_t last = rank;
    while (first < size) {
      function(static_cast<int>(first), static_cast<int>(std::min<std::int64_t>(last, size - 1)));
      first = first * kArity + 1;
      last = last * kArity + kArity;
    }
  }
  int num_in_subtree() const {
    int count = 0;
    for_levels([&count](int first, int last) { count += last - first + 1; });
    return count;
  }
};

// A place in a tree over several hosts. Passed by value, so that a SpanningTree of one host stays in registers.
struct PlaceAmongHosts {
  const HostGroups* hosts;
  int root_pe;
  int pe;

  [[gnu::cold]] static int parent(PlaceAmongHosts place);
  [[gnu::cold]] static int num_children(PlaceAmongHosts place);
  [[gnu::cold]] static int child(PlaceAmongHosts place, int which);
  [[gnu::cold]] static int num_in_subtree(PlaceAmongHosts place);

 private:
  // The member with the root's index, so the root itself on its host: leaders for different roots should differ.
  int leader_of(int host) const;
  // The hosts, ranked from the root's on, and this PE's host among them.
  CompleteTree tree_of_hosts() const;
  int host_at(int rank) const;
  // The members of this PE's host, ranked from its leader on.
  CompleteTree tree_on_host() const;
  int member_at(int rank) const;
};

class SpanningTree {
 public:
  static constexpr int kArity = CompleteTree::kArity;

  // `hosts`: of the PEs 0 to `num_pes` - 1; null if hosts make no difference. It must outlive the tree.
  SpanningTree(int root_pe, int pe, int num_pes, const HostGroups* hosts = nullptr)
      : root_pe_(root_pe), num_pes_(num_pes), rank_((pe - root_pe + num_pes) % num_pes), hosts_(hosts) {}

  bool is_root() const { return rank_ == 0; }
  int parent() const {
    if (hosts_ != nullptr) [[unlikely]]
      return PlaceAmongHosts::parent(place());
    return pe_of(tree().parent());
  }
  int num_children() const {
    if (hosts_ != nullptr) [[unlikely]]
      return PlaceAmongHosts::num_children(place());
    return tree().num_children();
  }
  // Those on other hosts first: their way is longer.
  int child(int which) const {
    if (hosts_ != nullptr) [[unlikely]]
      return PlaceAmongHosts::child(place(), which);
    return pe_of(tree().first_child() + which);
  }
  // Calls function(child) for each.
  template <class Function>
  void for_children(Function function) const {
    if (hosts_ != nullptr) [[unlikely]] {
      for (int i = 0, count = num_children(); i < count; ++i) function(child(i));
      return;
    }
    const int first = tree().first_child();
    for (int i = 0; i < tree().num_children(); ++i) function(pe_of(first + i));
  }
  // This PE and all below it.
  int num_in_subtree() const {
    return hosts_ != nullptr ? PlaceAmongHosts::num_in_subtree(place()) : tree().num_in_subtree();
  }

 private:
  CompleteTree tree() const { return {rank_, num_pes_}; }
  int pe_of(int rank) const { return static_cast<int>((std::int64_t{rank} + root_pe_) % num_pes_); }
  PlaceAmongHosts place() const { return {hosts_, root_pe_, pe_of(rank_)}; }

  int root_pe_;
  int num_pes_;
  int rank_;
  const HostGroups* hosts_;
};

}  // namespace weft::runtime
