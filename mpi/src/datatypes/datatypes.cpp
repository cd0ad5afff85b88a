// Entry points that query and use datatypes. constructors.cpp has those that make them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "entry/entry.h"
#include "entry/type_handles.h"
#include "models/mpi/datatype/describing/constructors.h"
#include "models/mpi/objects/addresses.h"
#include "objects/attributes.h"

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

namespace {

// Errors: MPI_ERR_TYPE if the contents need the large form.
Error check_small(const Recipe& recipe) {
  if (recipe.form == CallForm::kSmall) return {};
  return {MPI_ERR_TYPE,
          "the datatype was made with large counts; ask with the function whose name ends in _c"};
}

Error check_room(MPI_Count room, std::size_t needed, const void* array, const char* what) {
  if (needed > 0 && !is_address(array))
    return {MPI_ERR_ARG,
            weft::base::format("the array for the {} of the datatype is {}", what, describe_sentinel(array))};
  if (room >= 0 && static_cast<std::size_t>(room) >= needed) return {};
  return {MPI_ERR_ARG,
          weft::base::format("there is room for {} {}, but the datatype has {}", room, what, needed)};
}

struct ContentsRoom {
  MPI_Count integers;
  MPI_Count addresses;
  MPI_Count counts;
  MPI_Count datatypes;
};

Error copy_contents(const Datatype& type, const ContentsRoom& room, int* integers, MPI_Aint* addresses,
                    MPI_Count* counts, MPI_Datatype* datatypes) {
  const Recipe& recipe = type.recipe();
  if (recipe.combiner == MPI_COMBINER_NAMED)
    return {MPI_ERR_TYPE,
            "a predefined datatype has no contents; ask MPI_Type_get_envelope for the combiner first"};
  if (Error error = check_room(room.integers, recipe.integers.size(), integers, "integers"); !error.ok())
    return error;
  if (Error error = check_room(room.addresses, recipe.addresses.size(), addresses, "addresses"); !error.ok())
    return error;
  if (Error error = check_room(room.counts, recipe.counts.size(), counts, "large counts"); !error.ok())
    return error;
  if (Error error = check_room(room.datatypes, recipe.datatypes.size(), static_cast<const void*>(datatypes),
                               "datatypes");
      !error.ok())
    return error;
  std::copy(recipe.integers.begin(), recipe.integers.end(), integers);
  std::copy(recipe.addresses.begin(), recipe.addresses.end(), addresses);
  std::copy(recipe.counts.begin(), recipe.counts.end(), counts);
  for (std::size_t i = 0; i < recipe.datatypes.size(); ++i) datatypes[i] = give_type(*recipe.datatypes[i]);
  return {};
}

}  // namespace

MPI_Aint MPI_Aint_add(MPI_Aint base, MPI_Aint disp) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(disp));
}

MPI_Aint MPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) - static_cast<std::uintptr_t>(addr2));
}

int MPI_Get_address(const void* location, MPI_Aint* address) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = check_result(address); !error.ok()) return error;
    *address = reinterpret_cast<MPI_Aint>(location);
    return {};
  });
}

int MPI_Type_commit(MPI_Datatype* datatype) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(datatype); !error.ok()) return error;
    if (Error error = find_type(*datatype, &type); !error.ok()) return error;
    type->commit();
    return {};
  });
}

int MPI_Type_free(MPI_Datatype* datatype) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(datatype); !error.ok()) return error;
    if (Error error = find_type(*datatype, &type); !error.ok()) return error;
    if (is_kept(*type))
      return {MPI_ERR_TYPE, "the datatype is predefined; free those only that the program has made"};
    if (Error error = remove_attributes(*datatype, *type); !error.ok()) return error;
    type->release();
    *datatype = MPI_DATATYPE_NULL;
    return {};
  });
}

int MPI_Type_dup(MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* old = nullptr;
    if (Error error = check_result(newtype); !error.ok()) return error;
    if (Error error = find_type(oldtype, &old); !error.ok()) return error;
    Ref<Datatype> made;
    if (Error error = make_dup(*old, &made); !error.ok()) return error;
    if (Error error = copy_attributes(oldtype, *old, *made); !error.ok()) return error;
    *newtype = made.leave()->handle();
    return {};
  });
}

int MPI_Type_size_c(MPI_Datatype datatype, MPI_Count* size) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(size); !error.ok()) return error;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    *size = type->size_bytes();
    return {};
  });
}

int MPI_Type_size_x(MPI_Datatype datatype, MPI_Count* size) { return MPI_Type_size_c(datatype, size); }

int MPI_Type_get_extent_c(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(lb); !error.ok()) return error;
    if (Error error = check_result(extent); !error.ok()) return error;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    *lb = type->lower_bound();
    *extent = type->extent();
    return {};
  });
}

int MPI_Type_get_extent_x(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
  return MPI_Type_get_extent_c(datatype, lb, extent);
}

int MPI_Type_get_true_extent_c(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(true_lb); !error.ok()) return error;
    if (Error error = check_result(true_extent); !error.ok()) return error;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    *true_lb = type->true_lower_bound();
    *true_extent = type->true_extent();
    return {};
  });
}

int MPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  return MPI_Type_get_true_extent_c(datatype, true_lb, true_extent);
}

int MPI_Type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(type_name); !error.ok()) return error;
    if (Error error = check_result(resultlen); !error.ok()) return error;
    // The null handle has a name, and nothing else.
    if (datatype != MPI_DATATYPE_NULL)
      if (Error error = find_type(datatype, &type); !error.ok()) return error;
    const std::string name = type == nullptr ? "MPI_DATATYPE_NULL" : type->name();
    std::memcpy(type_name, name.c_str(), name.size() + 1);
    *resultlen = static_cast<int>(name.size());
    return {};
  });
}

int MPI_Type_set_name(MPI_Datatype datatype, const char* type_name) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(type_name); !error.ok()) return error;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    type->set_name(std::string(type_name, strnlen(type_name, MPI_MAX_OBJECT_NAME - 1)));
    return {};
  });
}

int MPI_Type_get_envelope(MPI_Datatype datatype, int* num_integers, int* num_addresses, int* num_datatypes,
                          int* combiner) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    for (const int* result : {num_integers, num_addresses, num_datatypes, combiner})
      if (Error error = check_result(result); !error.ok()) return error;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    const Recipe& recipe = type->recipe();
    if (Error error = check_small(recipe); !error.ok()) return error;
    *num_integers = static_cast<int>(recipe.integers.size());
    *num_addresses = static_cast<int>(recipe.addresses.size());
    *num_datatypes = static_cast<int>(recipe.datatypes.size());
    *combiner = recipe.combiner;
    return {};
  });
}

int MPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
                            MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    for (const MPI_Count* result : {num_integers, num_addresses, num_large_counts, num_datatypes})
      if (Error error = check_result(result); !error.ok()) return error;
    if (Error error = check_result(combiner); !error.ok()) return error;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    const Recipe& recipe = type->recipe();
    *num_integers = static_cast<MPI_Count>(recipe.integers.size());
    *num_addresses = static_cast<MPI_Count>(recipe.addresses.size());
    *num_large_counts = static_cast<MPI_Count>(recipe.counts.size());
    *num_datatypes = static_cast<MPI_Count>(recipe.datatypes.size());
    *combiner = recipe.combiner;
    return {};
  });
}

int MPI_Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                          int array_of_integers[], MPI_Aint array_of_addresses[],
                          MPI_Datatype array_of_datatypes[]) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    if (Error error = check_small(type->recipe()); !error.ok()) return error;
    return copy_contents(*type, {max_integers, max_addresses, 0, max_datatypes}, array_of_integers,
                         array_of_addresses, nullptr, array_of_datatypes);
  });
}

int MPI_Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                            MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[],
                            MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
                            MPI_Datatype array_of_datatypes[]) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    return copy_contents(*type, {max_integers, max_addresses, max_large_counts, max_datatypes},
                         array_of_integers, array_of_addresses, array_of_large_counts, array_of_datatypes);
  });
}
