#include "models/mpi/objects/group.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/format.h"
#include "models/mpi/objects/error.h"

namespace weft::mpi {

namespace {

std::unordered_set<int> set_of(const Members& members) { return {members.begin(), members.end()}; }

// Which members the ranks name.
Error mark_ranks(const Members& members, std::span<const int> ranks, std::vector<bool>* marked) {
  marked->assign(members.size(), false);
  for (const int rank : ranks) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= members.size()) {
      return {MPI_ERR_RANK,
              base::format("rank {} is not in the group, which has {} members", rank, members.size())};
    }
    if ((*marked)[static_cast<std::size_t>(rank)]) {
      return {MPI_ERR_RANK, base::format("rank {} appears twice in the list of ranks", rank)};
    }
    (*marked)[static_cast<std::size_t>(rank)] = true;
  }
  return {};
}

}  // namespace

int Group::rank_of(int process) const {
  const auto found = std::find(members_->begin(), members_->end(), process);
  return found == members_->end() ? MPI_UNDEFINED : static_cast<int>(found - members_->begin());
}

Members union_of(const Members& one, const Members& other) {
  const std::unordered_set<int> known = set_of(one);
  Members result = one;
  std::copy_if(other.begin(), other.end(), std::back_inserter(result),
               [&](int member) { return !known.contains(member); });
  return result;
}

Members intersection_of(const Members& one, const Members& other) {
  const std::unordered_set<int> wanted = set_of(other);
  Members result;
  std::copy_if(one.begin(), one.end(), std::back_inserter(result),
               [&](int member) { return wanted.contains(member); });
  return result;
}

Members difference_of(const Members& one, const Members& other) {
  const std::unordered_set<int> unwanted = set_of(other);
  Members result;
  std::copy_if(one.begin(), one.end(), std::back_inserter(result),
               [&](int member) { return !unwanted.contains(member); });
  return result;
}

Error include_ranks(const Members& members, std::span<const int> ranks, Members* result) {
  std::vector<bool> marked;
  if (Error error = mark_ranks(members, ranks, &marked); !error.ok()) return error;
  result->clear();
  for (const int rank : ranks) result->push_back(members[static_cast<std::size_t>(rank)]);
  return {};
}

Error exclude_ranks(const Members& members, std::span<const int> ranks, Members* result) {
  std::vector<bool> marked;
  if (Error error = mark_ranks(members, ranks, &marked); !error.ok()) return error;
  result->clear();
  for (std::size_t at = 0; at < members.size(); ++at) {
    if (!marked[at]) result->push_back(members[at]);
  }
  return {};
}

Error expand_ranges(int size, std::span<const RankRange> ranges, std::vector<int>* ranks) {
  ranks->clear();
  for (const RankRange& range : ranges) {
    const auto [first, last, stride] = range;
    if (stride == 0)
      return {MPI_ERR_ARG, base::format("the range from {} to {} has the stride 0", first, last)};
    // 64 bits: the rank after the last one may not fit.
    for (std::int64_t rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
      if (rank < 0 || rank >= size) {
        return {MPI_ERR_RANK,
                base::format("the range from {} to {} has rank {}, but the group has {} members", first, last,
                             rank, size)};
      }
      ranks->push_back(static_cast<int>(rank));
      if (ranks->size() > static_cast<std::size_t>(size)) {
        return {MPI_ERR_RANK, "the ranges have a rank twice"};
      }
    }
  }
  return {};
}

Error translate_ranks(const Members& one, std::span<const int> ranks, const Members& other, int* result) {
  std::unordered_map<int, int> rank_in_other;
  for (std::size_t at = 0; at < other.size(); ++at) rank_in_other.emplace(other[at], static_cast<int>(at));
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    const int rank = ranks[at];
    if (rank == MPI_PROC_NULL) {
      result[at] = MPI_PROC_NULL;
      continue;
    }
    if (rank < 0 || static_cast<std::size_t>(rank) >= one.size()) {
      return {MPI_ERR_RANK,
              base::format("rank {} is not in the group, which has {} members", rank, one.size())};
    }
    const auto found = rank_in_other.find(one[static_cast<std::size_t>(rank)]);
    result[at] = found == rank_in_other.end() ? MPI_UNDEFINED : found->second;
  }
  return {};
}

int compare_members(const Members& one, const Members& other) {
  if (one == other) return MPI_IDENT;
  Members one_sorted = one;
  Members other_sorted = other;
  std::sort(one_sorted.begin(), one_sorted.end());
  std::sort(other_sorted.begin(), other_sorted.end());
  return one_sorted == other_sorted ? MPI_SIMILAR : MPI_UNEQUAL;
}

}  // namespace weft::mpi
