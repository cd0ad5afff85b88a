// The constructors of datatypes. Both forms of each are here, because MPI_Type_get_contents reports the arguments as they were given;
// they share a body.
#include "models/mpi/datatype/describing/constructors.h"

#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "weft/mpi/mpi.h"

#include "entry/entry.h"
#include "entry/type_handles.h"
#include "models/mpi/datatype/describing/arrays.h"

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

namespace {

std::size_t length_of(MPI_Count count) { return static_cast<std::size_t>(count < 0 ? 0 : count); }

// An array of the program as large counts: itself, or a copy of smaller values.
template <class Value>
class WideCounts {
 public:
  WideCounts(const Value* values, MPI_Count count) {
    if constexpr (std::is_same_v<Value, MPI_Count>) {
      counts_ = {values, length_of(count)};
    } else {
      copy_.assign(values, values + length_of(count));
      counts_ = copy_;
    }
  }
  WideCounts(const WideCounts&) = delete;
  WideCounts& operator=(const WideCounts&) = delete;
  operator CountSpan() const { return counts_; }  // NOLINT(google-explicit-constructor)

 private:
  std::vector<MPI_Count> copy_;
  CountSpan counts_;
};

// The form that the program has called, by the type of its counts.
template <class Count>
constexpr CallForm form_of() {
  return std::is_same_v<Count, int> ? CallForm::kSmall : CallForm::kLarge;
}

// The arrays have `count` elements, so they may be null if there are none.
Error check_arrays(MPI_Count count, std::initializer_list<PointerArgument> arrays) {
  if (Error error = check_count(count); !error.ok()) return error;
  return count == 0 ? Error() : require(arrays);
}

// Calls make(Datatype& old, Ref<Datatype>*) and gives the datatype to the program.
template <class Make>
int construct(const char* function, MPI_Datatype oldtype, MPI_Datatype* newtype, const Make& make) {
  return guarded(function, kNoObject, [&]() -> Error {
    Datatype* old = nullptr;
    if (Error error = check_result(newtype); !error.ok()) return error;
    if (Error error = find_type(oldtype, &old); !error.ok()) return error;
    Ref<Datatype> made;
    if (Error error = make(*old, &made); !error.ok()) return error;
    *newtype = made.leave()->handle();
    return {};
  });
}

template <class Count>
int construct_contiguous(const char* function, Count count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(function, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_contiguous(count, old, form_of<Count>(), made);
  });
}

using MakeVector = Error (*)(const VectorShape&, Datatype&, CallForm, Ref<Datatype>*);
template <class Count>
int construct_vector(const char* function, MakeVector make, Count count, Count blocklength, MPI_Count stride,
                     MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(function, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make({count, blocklength, stride}, old, form_of<Count>(), made);
  });
}

using MakeIndexed = Error (*)(CountSpan, CountSpan, Datatype&, CallForm, Ref<Datatype>*);
template <class Count, class Displacement>
int construct_indexed(const char* function, MakeIndexed make, Count count, const Count* lengths,
                      const Displacement* displacements, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(function, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) -> Error {
    if (Error error = check_arrays(
            count, {{lengths, "array_of_blocklengths"}, {displacements, "array_of_displacements"}});
        !error.ok())
      return error;
    return make(WideCounts(lengths, count), WideCounts(displacements, count), old, form_of<Count>(), made);
  });
}

using MakeIndexedBlock = Error (*)(MPI_Count, CountSpan, Datatype&, CallForm, Ref<Datatype>*);
template <class Count, class Displacement>
int construct_indexed_block(const char* function, MakeIndexedBlock make, Count count, Count blocklength,
                            const Displacement* displacements, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(function, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) -> Error {
    if (Error error = check_arrays(count, {{displacements, "array_of_displacements"}}); !error.ok())
      return error;
    return make(blocklength, WideCounts(displacements, count), old, form_of<Count>(), made);
  });
}

template <class Count, class Displacement>
int construct_struct(const char* function, Count count, const Count* lengths,
                     const Displacement* displacements, const MPI_Datatype types[], MPI_Datatype* newtype) {
  return guarded(function, kNoObject, [&]() -> Error {
    if (Error error = check_result(newtype); !error.ok()) return error;
    if (Error error = check_arrays(count, {{lengths, "array_of_blocklengths"},
                                           {displacements, "array_of_displacements"},
                                           {types, "array_of_types"}});
        !error.ok())
      return error;
    std::vector<Datatype*> parts(length_of(count));
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (Error error = find_type(types[i], &parts[i]); !error.ok()) return error;
    Ref<Datatype> made;
    if (Error error = make_struct(WideCounts(lengths, count), WideCounts(displacements, count), parts,
                                  form_of<Count>(), &made);
        !error.ok())
      return error;
    *newtype = made.leave()->handle();
    return {};
  });
}

template <class Count>
int construct_subarray(const char* function, int ndims, const Count* sizes, const Count* subsizes,
                       const Count* starts, int order, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(function, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) -> Error {
    if (ndims > 0) {
      if (Error error = require(
              {{sizes, "array_of_sizes"}, {subsizes, "array_of_subsizes"}, {starts, "array_of_starts"}});
          !error.ok())
        return error;
    }
    const WideCounts all(sizes, ndims);
    const WideCounts parts(subsizes, ndims);
    const WideCounts first(starts, ndims);
    return make_subarray({all, parts, first, order}, old, form_of<Count>(), made);
  });
}

// The arrays of MPI_Type_create_darray that have the same type in both forms.
struct Distribution {
  const int* kinds;
  const int* arguments;
  const int* processes;
};

template <class Count>
int construct_darray(const char* function, int size, int rank, int ndims, const Count* sizes,
                     const Distribution& distribution, int order, MPI_Datatype oldtype,
                     MPI_Datatype* newtype) {
  return construct(function, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) -> Error {
    const auto& [kinds, arguments, processes] = distribution;
    if (ndims > 0) {
      if (Error error = require({{sizes, "array_of_gsizes"},
                                 {kinds, "array_of_distribs"},
                                 {arguments, "array_of_dargs"},
                                 {processes, "array_of_psizes"}});
          !error.ok())
        return error;
    }
    const std::size_t length = length_of(ndims);
    const WideCounts all(sizes, ndims);
    return make_darray({size, rank, all, {kinds, length}, {arguments, length}, {processes, length}, order},
                       old, form_of<Count>(), made);
  });
}

template <class Bound>
int construct_resized(const char* function, CallForm form, MPI_Datatype oldtype, Bound lower_bound,
                      Bound extent, MPI_Datatype* newtype) {
  return construct(function, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_resized(lower_bound, extent, old, form, made);
  });
}

// Gives a datatype that MPI keeps to the program.
Error give_kept(Datatype* type, MPI_Datatype* newtype) {
  *newtype = type->handle();
  return {};
}

}  // namespace

int MPI_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct_contiguous(__func__, count, oldtype, newtype);
}
int MPI_Type_contiguous_c(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct_contiguous(__func__, count, oldtype, newtype);
}

int MPI_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct_vector(__func__, make_vector, count, blocklength, stride, oldtype, newtype);
}
int MPI_Type_vector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                      MPI_Datatype* newtype) {
  return construct_vector(__func__, make_vector, count, blocklength, stride, oldtype, newtype);
}

int MPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                            MPI_Datatype* newtype) {
  return construct_vector(__func__, make_hvector, count, blocklength, stride, oldtype, newtype);
}
int MPI_Type_create_hvector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                              MPI_Datatype* newtype) {
  return construct_vector(__func__, make_hvector, count, blocklength, stride, oldtype, newtype);
}

int MPI_Type_indexed(int count, const int array_of_blocklengths[], const int array_of_displacements[],
                     MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct_indexed(__func__, make_indexed, count, array_of_blocklengths, array_of_displacements,
                           oldtype, newtype);
}
int MPI_Type_indexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
                       const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                       MPI_Datatype* newtype) {
  return construct_indexed(__func__, make_indexed, count, array_of_blocklengths, array_of_displacements,
                           oldtype, newtype);
}

int MPI_Type_create_hindexed(int count, const int array_of_blocklengths[],
                             const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                             MPI_Datatype* newtype) {
  return construct_indexed(__func__, make_hindexed, count, array_of_blocklengths, array_of_displacements,
                           oldtype, newtype);
}
int MPI_Type_create_hindexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
                               const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                               MPI_Datatype* newtype) {
  return construct_indexed(__func__, make_hindexed, count, array_of_blocklengths, array_of_displacements,
                           oldtype, newtype);
}

int MPI_Type_create_indexed_block(int count, int blocklength, const int array_of_displacements[],
                                  MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct_indexed_block(__func__, make_indexed_block, count, blocklength, array_of_displacements,
                                 oldtype, newtype);
}
int MPI_Type_create_indexed_block_c(MPI_Count count, MPI_Count blocklength,
                                    const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                                    MPI_Datatype* newtype) {
  return construct_indexed_block(__func__, make_indexed_block, count, blocklength, array_of_displacements,
                                 oldtype, newtype);
}

int MPI_Type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[],
                                   MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct_indexed_block(__func__, make_hindexed_block, count, blocklength, array_of_displacements,
                                 oldtype, newtype);
}
int MPI_Type_create_hindexed_block_c(MPI_Count count, MPI_Count blocklength,
                                     const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                                     MPI_Datatype* newtype) {
  return construct_indexed_block(__func__, make_hindexed_block, count, blocklength, array_of_displacements,
                                 oldtype, newtype);
}

int MPI_Type_create_struct(int count, const int array_of_blocklengths[],
                           const MPI_Aint array_of_displacements[], const MPI_Datatype array_of_types[],
                           MPI_Datatype* newtype) {
  return construct_struct(__func__, count, array_of_blocklengths, array_of_displacements, array_of_types,
                          newtype);
}
int MPI_Type_create_struct_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
                             const MPI_Count array_of_displacements[], const MPI_Datatype array_of_types[],
                             MPI_Datatype* newtype) {
  return construct_struct(__func__, count, array_of_blocklengths, array_of_displacements, array_of_types,
                          newtype);
}

int MPI_Type_create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[],
                             const int array_of_starts[], int order, MPI_Datatype oldtype,
                             MPI_Datatype* newtype) {
  return construct_subarray(__func__, ndims, array_of_sizes, array_of_subsizes, array_of_starts, order,
                            oldtype, newtype);
}
int MPI_Type_create_subarray_c(int ndims, const MPI_Count array_of_sizes[],
                               const MPI_Count array_of_subsizes[], const MPI_Count array_of_starts[],
                               int order, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct_subarray(__func__, ndims, array_of_sizes, array_of_subsizes, array_of_starts, order,
                            oldtype, newtype);
}

int MPI_Type_create_darray(int size, int rank, int ndims, const int array_of_gsizes[],
                           const int array_of_distribs[], const int array_of_dargs[],
                           const int array_of_psizes[], int order, MPI_Datatype oldtype,
                           MPI_Datatype* newtype) {
  return construct_darray(__func__, size, rank, ndims, array_of_gsizes,
                          {array_of_distribs, array_of_dargs, array_of_psizes}, order, oldtype, newtype);
}
int MPI_Type_create_darray_c(int size, int rank, int ndims, const MPI_Count array_of_gsizes[],
                             const int array_of_distribs[], const int array_of_dargs[],
                             const int array_of_psizes[], int order, MPI_Datatype oldtype,
                             MPI_Datatype* newtype) {
  return construct_darray(__func__, size, rank, ndims, array_of_gsizes,
                          {array_of_distribs, array_of_dargs, array_of_psizes}, order, oldtype, newtype);
}

int MPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype) {
  return construct_resized(__func__, CallForm::kSmall, oldtype, lb, extent, newtype);
}
int MPI_Type_create_resized_c(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype) {
  return construct_resized(__func__, CallForm::kLarge, oldtype, lb, extent, newtype);
}

int MPI_Type_create_f90_real(int p, int r, MPI_Datatype* newtype) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* made = nullptr;
    if (Error error = check_result(newtype); !error.ok()) return error;
    if (Error error = this_rank().types.f90_real(p, r, &made); !error.ok()) return error;
    return give_kept(made, newtype);
  });
}

int MPI_Type_create_f90_complex(int p, int r, MPI_Datatype* newtype) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* made = nullptr;
    if (Error error = check_result(newtype); !error.ok()) return error;
    if (Error error = this_rank().types.f90_complex(p, r, &made); !error.ok()) return error;
    return give_kept(made, newtype);
  });
}

int MPI_Type_create_f90_integer(int r, MPI_Datatype* newtype) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* made = nullptr;
    if (Error error = check_result(newtype); !error.ok()) return error;
    if (Error error = this_rank().types.f90_integer(r, &made); !error.ok()) return error;
    return give_kept(made, newtype);
  });
}

int MPI_Type_match_size(int typeclass, int size, MPI_Datatype* datatype) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* found = nullptr;
    if (Error error = check_result(datatype); !error.ok()) return error;
    if (Error error = this_rank().types.match_size(typeclass, size, &found); !error.ok()) return error;
    return give_kept(found, datatype);
  });
}

int MPI_Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype* pair_type) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* value = nullptr;
    Datatype* index = nullptr;
    if (Error error = check_result(pair_type); !error.ok()) return error;
    if (Error error = find_type(value_type, &value); !error.ok()) return error;
    if (Error error = find_type(index_type, &index); !error.ok()) return error;
    Datatype* const pair = this_rank().types.value_index(*value, *index);
    *pair_type = pair == nullptr ? MPI_DATATYPE_NULL : pair->handle();
    return {};
  });
}
