// Groups of processes.
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "entry/entry.h"
#include "entry/handles.h"
#include "entry/objects.h"
#include "models/mpi/rank.h"

using namespace weft::mpi;

namespace {

MPI_Group new_group(Members members, const Group& source) {
  return give_group(std::make_shared<const Members>(std::move(members)), source.session_space());
}

// A group of two.
template <class Combine>
int combined(const char* name, MPI_Group one, MPI_Group other, MPI_Group* result, const Combine& combine) {
  return guarded(name, kNoObject, [&]() -> Error {
    if (Error error = require({{result, "newgroup"}}); !error.ok()) return error;
    Group* first = nullptr;
    Group* second = nullptr;
    if (Error error = find_object(one, &first); !error.ok()) return error;
    if (Error error = find_object(other, &second); !error.ok()) return error;
    // An empty group comes from no session.
    const Group& source = first->session_space() != nullptr ? *first : *second;
    *result = new_group(combine(*first->members(), *second->members()), source);
    return {};
  });
}

// A group with, or without, some ranks of another one.
using Select = Error (*)(const Members& members, std::span<const int> ranks, Members* result);

Error select_ranks(MPI_Group group, std::span<const int> ranks, MPI_Group* result, Select select) {
  Group* source = nullptr;
  if (Error error = find_object(group, &source); !error.ok()) return error;
  Members members;
  if (Error error = select(*source->members(), ranks, &members); !error.ok()) return error;
  *result = new_group(std::move(members), *source);
  return {};
}

Error check_list(int n, const void* list, const char* name) {
  if (n < 0) return {MPI_ERR_ARG, weft::base::format("the length {} of {} is negative", n, name)};
  return n == 0 ? Error() : require({{list, name}});
}

int selected(const char* name, MPI_Group group, int n, const int* ranks, MPI_Group* result, Select select) {
  return guarded(name, kNoObject, [&]() -> Error {
    if (Error error = require({{result, "newgroup"}}); !error.ok()) return error;
    if (Error error = check_list(n, ranks, "ranks"); !error.ok()) return error;
    return select_ranks(group, {ranks, static_cast<std::size_t>(n)}, result, select);
  });
}

int selected_by_ranges(const char* name, MPI_Group group, int n, const RankRange* ranges, MPI_Group* result,
                       Select select) {
  return guarded(name, kNoObject, [&]() -> Error {
    if (Error error = require({{result, "newgroup"}}); !error.ok()) return error;
    if (Error error = check_list(n, ranges, "ranges"); !error.ok()) return error;
    Group* source = nullptr;
    if (Error error = find_object(group, &source); !error.ok()) return error;
    std::vector<int> ranks;
    if (Error error = expand_ranges(source->size(), {ranges, static_cast<std::size_t>(n)}, &ranks);
        !error.ok()) {
      return error;
    }
    return select_ranks(group, ranks, result, select);
  });
}

}  // namespace

int MPI_Group_size(MPI_Group group, int* size) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{size, "size"}}); !error.ok()) return error;
    Group* object = nullptr;
    if (Error error = find_object(group, &object); !error.ok()) return error;
    *size = object->size();
    return {};
  });
}

int MPI_Group_rank(MPI_Group group, int* rank) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{rank, "rank"}}); !error.ok()) return error;
    Group* object = nullptr;
    if (Error error = find_object(group, &object); !error.ok()) return error;
    *rank = object->rank_of(this_rank().number);
    return {};
  });
}

int MPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[]) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = check_list(n, ranks1, "ranks1"); !error.ok()) return error;
    if (Error error = check_list(n, ranks2, "ranks2"); !error.ok()) return error;
    Group* one = nullptr;
    Group* other = nullptr;
    if (Error error = find_object(group1, &one); !error.ok()) return error;
    if (Error error = find_object(group2, &other); !error.ok()) return error;
    return translate_ranks(*one->members(), {ranks1, static_cast<std::size_t>(n)}, *other->members(), ranks2);
  });
}

int MPI_Group_compare(MPI_Group group1, MPI_Group group2, int* result) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{result, "result"}}); !error.ok()) return error;
    Group* one = nullptr;
    Group* other = nullptr;
    if (Error error = find_object(group1, &one); !error.ok()) return error;
    if (Error error = find_object(group2, &other); !error.ok()) return error;
    *result = compare_members(*one->members(), *other->members());
    return {};
  });
}

int MPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return combined(__func__, group1, group2, newgroup, union_of);
}
int MPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return combined(__func__, group1, group2, newgroup, intersection_of);
}
int MPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return combined(__func__, group1, group2, newgroup, difference_of);
}

int MPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  return selected(__func__, group, n, ranks, newgroup, include_ranks);
}
int MPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  return selected(__func__, group, n, ranks, newgroup, exclude_ranks);
}
int MPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  return selected_by_ranges(__func__, group, n, ranges, newgroup, include_ranks);
}
int MPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  return selected_by_ranges(__func__, group, n, ranges, newgroup, exclude_ranks);
}

int MPI_Group_free(MPI_Group* group) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{group, "group"}}); !error.ok()) return error;
    Group* object = nullptr;
    if (Error error = find_object(*group, &object); !error.ok()) return error;
    if (!is_predefined(*group)) object->release();
    *group = MPI_GROUP_NULL;
    return {};
  });
}
