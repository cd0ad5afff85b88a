// A group: processes in the order of their ranks. It never changes.
//
// Threads: the PE's.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "models/mpi/objects/error.h"
#include "models/mpi/objects/members.h"
#include "models/mpi/objects/object.h"

namespace weft::mpi {

class BufferSpace;

class Group final : public Object {
 public:
  // `session_space`: of the session that the group comes from; null in a program without sessions.
  explicit Group(MembersPointer members, std::shared_ptr<BufferSpace> session_space = nullptr)
      : Object(ObjectKind::kGroup), members_(std::move(members)), session_space_(std::move(session_space)) {}

  const MembersPointer& members() const { return members_; }
  int size() const { return static_cast<int>(members_->size()); }
  // MPI_UNDEFINED if the process is not in the group.
  int rank_of(int process) const;
  // For the communicators that are made of the group.
  const std::shared_ptr<BufferSpace>& session_space() const { return session_space_; }

 private:
  MembersPointer members_;
  std::shared_ptr<BufferSpace> session_space_;
};

// Three numbers: the first rank, the last one, and the stride.
using RankRange = int[3];

Members union_of(const Members& one, const Members& other);
Members intersection_of(const Members& one, const Members& other);
Members difference_of(const Members& one, const Members& other);

// The members with these ranks, in this order; or those without them, in their old order. Ranks that are not in the group,
// and ranks that appear twice, are errors.
Error include_ranks(const Members& members, std::span<const int> ranks, Members* result);
Error exclude_ranks(const Members& members, std::span<const int> ranks, Members* result);

// The ranks of all ranges, one range after the other; each must be below `size`.
Error expand_ranges(int size, std::span<const RankRange> ranges, std::vector<int>* ranks);

// The rank in `other` of each rank in `one`: MPI_UNDEFINED if there is none, and MPI_PROC_NULL for MPI_PROC_NULL.
Error translate_ranks(const Members& one, std::span<const int> ranks, const Members& other, int* result);

// MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
int compare_members(const Members& one, const Members& other);

}  // namespace weft::mpi
