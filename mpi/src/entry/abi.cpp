// The binary interface: its version, the sizes of its types, and what a Fortran layer states about Fortran's types.
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "entry/entry.h"
#include "entry/handles.h"
#include "entry/objects.h"
#include "models/mpi/rank.h"

using namespace weft::mpi;

namespace {

// MPI_LOGICAL has at most 16 bytes.
Error check_logical_size(int logical_size) {
  for (const int size : {1, 2, 4, 8, 16}) {
    if (logical_size == size) return {};
  }
  return {MPI_ERR_ARG,
          weft::base::format("a Fortran logical of {} bytes; 1, 2, 4, 8 and 16 are supported", logical_size)};
}

std::vector<std::byte> bytes_at(const void* address, int size) {
  const auto* const first = static_cast<const std::byte*>(address);
  return {first, first + size};
}

}  // namespace

int MPI_Abi_get_version(int* abi_major, int* abi_minor) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{abi_major, "abi_major"}, {abi_minor, "abi_minor"}}); !error.ok())
      return error;
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return {};
  });
}

int MPI_Abi_get_info(MPI_Info* info) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{info, "info"}}); !error.ok()) return error;
    const Info::Pairs sizes = {{"mpi_aint_size", std::to_string(sizeof(MPI_Aint))},
                               {"mpi_count_size", std::to_string(sizeof(MPI_Count))},
                               {"mpi_offset_size", std::to_string(sizeof(MPI_Offset))}};
    *info = make_handle<MPI_Info>(Ref<Info>::adopt(new Info(sizes)));
    return {};
  });
}

int MPI_Abi_get_fortran_info(MPI_Info* info) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{info, "info"}}); !error.ok()) return error;
    const Ref<Info>& stated = this_rank().fortran.info;
    *info = stated ? make_handle<MPI_Info>(Ref<Info>::adopt(new Info(stated->pairs()))) : MPI_INFO_NULL;
    return {};
  });
}

int MPI_Abi_set_fortran_info(MPI_Info info) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Info* stated = nullptr;
    if (Error error = find_object(info, &stated); !error.ok()) return error;
    Ref<Info>& kept = this_rank().fortran.info;
    if (kept) return {MPI_ERR_ABI, "the Fortran info has been set already; it can be set once"};
    kept = Ref<Info>::adopt(new Info(stated->pairs()));
    return {};
  });
}

int MPI_Abi_set_fortran_booleans(int logical_size, void* logical_true, void* logical_false) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{logical_true, "logical_true"}, {logical_false, "logical_false"}});
        !error.ok())
      return error;
    if (Error error = check_logical_size(logical_size); !error.ok()) return error;
    FortranSettings& fortran = this_rank().fortran;
    if (!fortran.true_value.empty())
      return {MPI_ERR_ABI, "the Fortran booleans have been set already; they can be set once"};
    fortran.true_value = bytes_at(logical_true, logical_size);
    fortran.false_value = bytes_at(logical_false, logical_size);
    return {};
  });
}

int MPI_Abi_get_fortran_booleans(int logical_size, void* logical_true, void* logical_false, int* is_set) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error =
            require({{logical_true, "logical_true"}, {logical_false, "logical_false"}, {is_set, "is_set"}});
        !error.ok()) {
      return error;
    }
    const FortranSettings& fortran = this_rank().fortran;
    *is_set = fortran.true_value.empty() ? 0 : 1;
    if (*is_set == 0) return {};
    if (static_cast<std::size_t>(logical_size) != fortran.true_value.size()) {
      return {MPI_ERR_ARG, weft::base::format("a Fortran logical was set with {} bytes and is read with {}",
                                              fortran.true_value.size(), logical_size)};
    }
    std::memcpy(logical_true, fortran.true_value.data(), fortran.true_value.size());
    std::memcpy(logical_false, fortran.false_value.data(), fortran.false_value.size());
    return {};
  });
}
