// The constructors of datatypes. Both forms of each are here: MPI_Type_get_contents reports the arguments as they were given.
#include <cstddef>
#include <span>
#include <vector>

#include "weft/mpi/mpi.h"

#include "entry.h"
#include "models/mpi/datatype/arrays.h"
#include "models/mpi/datatype/constructors.h"
#include "type_handles.h"

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

namespace {

// The values of the small form.
template <class Small>
class WideCounts {
 public:
  WideCounts(const Small* values, MPI_Count count) : values_(values, values + (count < 0 ? 0 : count)) {}
  operator CountSpan() const { return values_; }  // NOLINT(google-explicit-constructor)

 private:
  std::vector<MPI_Count> values_;
};

CountSpan counts(const MPI_Count* values, MPI_Count count) {
  return {values, static_cast<std::size_t>(count < 0 ? 0 : count)};
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

// The same for constructors with arrays of `count` blocks.
template <class Make>
int construct_blocks(const char* function, MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype,
                     const Make& make) {
  return construct(function, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) -> Error {
    if (Error error = check_count(count); !error.ok()) return error;
    return make(old, made);
  });
}

template <class Lengths, class Displacements>
int construct_struct(const char* function, CallForm form, MPI_Count count, const Lengths& lengths,
                     const Displacements& displacements, const MPI_Datatype types[], MPI_Datatype* newtype) {
  return guarded(function, kNoObject, [&]() -> Error {
    if (Error error = check_result(newtype); !error.ok()) return error;
    if (Error error = check_count(count); !error.ok()) return error;
    std::vector<Datatype*> parts(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (Error error = find_type(types[i], &parts[i]); !error.ok()) return error;
    Ref<Datatype> made;
    if (Error error = make_struct(lengths, displacements, parts, form, &made); !error.ok()) return error;
    *newtype = made.leave()->handle();
    return {};
  });
}

std::span<const int> integers(const int* values, int count) {
  return {values, static_cast<std::size_t>(count < 0 ? 0 : count)};
}

// Gives a datatype that MPI keeps to the program.
Error give_kept(Datatype* type, MPI_Datatype* newtype) {
  *newtype = type->handle();
  return {};
}

}  // namespace

int MPI_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_contiguous(count, old, CallForm::kSmall, made);
  });
}

int MPI_Type_contiguous_c(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_contiguous(count, old, CallForm::kLarge, made);
  });
}

int MPI_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_vector({count, blocklength, stride}, old, CallForm::kSmall, made);
  });
}

int MPI_Type_vector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                      MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_vector({count, blocklength, stride}, old, CallForm::kLarge, made);
  });
}

int MPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                            MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_hvector({count, blocklength, stride}, old, CallForm::kSmall, made);
  });
}

int MPI_Type_create_hvector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                              MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_hvector({count, blocklength, stride}, old, CallForm::kLarge, made);
  });
}

int MPI_Type_indexed(int count, const int array_of_blocklengths[], const int array_of_displacements[],
                     MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct_blocks(__func__, count, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_indexed(WideCounts(array_of_blocklengths, count), WideCounts(array_of_displacements, count),
                        old, CallForm::kSmall, made);
  });
}

int MPI_Type_indexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
                       const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                       MPI_Datatype* newtype) {
  return construct_blocks(__func__, count, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_indexed(counts(array_of_blocklengths, count), counts(array_of_displacements, count), old,
                        CallForm::kLarge, made);
  });
}

int MPI_Type_create_hindexed(int count, const int array_of_blocklengths[],
                             const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                             MPI_Datatype* newtype) {
  return construct_blocks(__func__, count, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_hindexed(WideCounts(array_of_blocklengths, count), WideCounts(array_of_displacements, count),
                         old, CallForm::kSmall, made);
  });
}

int MPI_Type_create_hindexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
                               const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                               MPI_Datatype* newtype) {
  return construct_blocks(__func__, count, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_hindexed(counts(array_of_blocklengths, count), counts(array_of_displacements, count), old,
                         CallForm::kLarge, made);
  });
}

int MPI_Type_create_indexed_block(int count, int blocklength, const int array_of_displacements[],
                                  MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct_blocks(__func__, count, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_indexed_block(blocklength, WideCounts(array_of_displacements, count), old, CallForm::kSmall,
                              made);
  });
}

int MPI_Type_create_indexed_block_c(MPI_Count count, MPI_Count blocklength,
                                    const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                                    MPI_Datatype* newtype) {
  return construct_blocks(__func__, count, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_indexed_block(blocklength, counts(array_of_displacements, count), old, CallForm::kLarge,
                              made);
  });
}

int MPI_Type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[],
                                   MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct_blocks(__func__, count, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_hindexed_block(blocklength, WideCounts(array_of_displacements, count), old, CallForm::kSmall,
                               made);
  });
}

int MPI_Type_create_hindexed_block_c(MPI_Count count, MPI_Count blocklength,
                                     const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                                     MPI_Datatype* newtype) {
  return construct_blocks(__func__, count, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_hindexed_block(blocklength, counts(array_of_displacements, count), old, CallForm::kLarge,
                               made);
  });
}

int MPI_Type_create_struct(int count, const int array_of_blocklengths[],
                           const MPI_Aint array_of_displacements[], const MPI_Datatype array_of_types[],
                           MPI_Datatype* newtype) {
  return without_exceptions(__func__, kNoObject, [&] {
    return construct_struct("MPI_Type_create_struct", CallForm::kSmall, count,
                            WideCounts(array_of_blocklengths, count),
                            WideCounts(array_of_displacements, count), array_of_types, newtype);
  });
}

int MPI_Type_create_struct_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
                             const MPI_Count array_of_displacements[], const MPI_Datatype array_of_types[],
                             MPI_Datatype* newtype) {
  return construct_struct(__func__, CallForm::kLarge, count, counts(array_of_blocklengths, count),
                          counts(array_of_displacements, count), array_of_types, newtype);
}

int MPI_Type_create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[],
                             const int array_of_starts[], int order, MPI_Datatype oldtype,
                             MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    const WideCounts sizes(array_of_sizes, ndims);
    const WideCounts subsizes(array_of_subsizes, ndims);
    const WideCounts starts(array_of_starts, ndims);
    return make_subarray({sizes, subsizes, starts, order}, old, CallForm::kSmall, made);
  });
}

int MPI_Type_create_subarray_c(int ndims, const MPI_Count array_of_sizes[],
                               const MPI_Count array_of_subsizes[], const MPI_Count array_of_starts[],
                               int order, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_subarray({counts(array_of_sizes, ndims), counts(array_of_subsizes, ndims),
                          counts(array_of_starts, ndims), order},
                         old, CallForm::kLarge, made);
  });
}

int MPI_Type_create_darray(int size, int rank, int ndims, const int array_of_gsizes[],
                           const int array_of_distribs[], const int array_of_dargs[],
                           const int array_of_psizes[], int order, MPI_Datatype oldtype,
                           MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    const WideCounts sizes(array_of_gsizes, ndims);
    return make_darray({size, rank, sizes, integers(array_of_distribs, ndims),
                        integers(array_of_dargs, ndims), integers(array_of_psizes, ndims), order},
                       old, CallForm::kSmall, made);
  });
}

int MPI_Type_create_darray_c(int size, int rank, int ndims, const MPI_Count array_of_gsizes[],
                             const int array_of_distribs[], const int array_of_dargs[],
                             const int array_of_psizes[], int order, MPI_Datatype oldtype,
                             MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_darray({size, rank, counts(array_of_gsizes, ndims), integers(array_of_distribs, ndims),
                        integers(array_of_dargs, ndims), integers(array_of_psizes, ndims), order},
                       old, CallForm::kLarge, made);
  });
}

int MPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_resized(lb, extent, old, CallForm::kSmall, made);
  });
}

int MPI_Type_create_resized_c(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype) {
  return construct(__func__, oldtype, newtype, [&](Datatype& old, Ref<Datatype>* made) {
    return make_resized(lb, extent, old, CallForm::kLarge, made);
  });
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
