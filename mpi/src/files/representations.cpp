// MPI_Register_datarep: data representations of the program.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <variant>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "entry/entry.h"
#include "models/mpi/datatype/describing/representation.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/rank.h"

namespace weft::mpi {

namespace {

// A null function: nothing is converted.
using Conversion = std::variant<MPI_Datarep_conversion_function*, MPI_Datarep_conversion_function_c*>;

class ProgramRepresentation final : public Representation {
 public:
  struct Functions {
    Conversion read;
    Conversion write;
    MPI_Datarep_extent_function* extent;
    void* extra_state;
  };

  ProgramRepresentation(std::string name, const Functions& functions)
      : Representation(std::move(name)), functions_(functions) {}

  Error find_size(const BasicType& type, MPI_Count* size) const override {
    MPI_Aint extent = 0;
    const ProgramRuns program;
    const int code = functions_.extent(type.handle, &extent, functions_.extra_state);
    if (code != MPI_SUCCESS || extent <= 0)
      return {MPI_ERR_CONVERSION,
              base::format("the extent function of the data representation \"{}\" gave the code {} and the "
                           "extent {} for {}",
                           name(), code, extent, type.name)};
    *size = extent;
    return {};
  }
  Error to_file(const BasicType& type, MPI_Count number, const std::byte* native,
                std::byte* in_file) const override {
    return convert(functions_.write, type, number, const_cast<std::byte*>(native), in_file, in_file, native);
  }
  Error from_file(const BasicType& type, MPI_Count number, const std::byte* in_file,
                  std::byte* native) const override {
    return convert(functions_.read, type, number, native, const_cast<std::byte*>(in_file), native, in_file);
  }

 private:
  // `to` and `from` are `native` and `in_file` in the direction of the copy.
  Error convert(const Conversion& conversion, const BasicType& type, MPI_Count number, std::byte* native,
                std::byte* in_file, std::byte* to, const std::byte* from) const {
    MPI_Count file_size = 0;
    if (Error error = find_size(type, &file_size); !error.ok()) return error;
    if (std::visit([](auto* function) { return function == nullptr; }, conversion)) {
      if (file_size != type.size)
        return {
            MPI_ERR_CONVERSION,
            base::format("the data representation \"{}\" has no conversion function, but another size of {}",
                         name(), type.name)};
      std::memcpy(to, from, static_cast<std::size_t>(number * file_size));
      return {};
    }
    // The small form of the function takes an int.
    constexpr MPI_Count kMostValues = std::numeric_limits<int>::max();
    while (number > 0) {
      const MPI_Count now = std::min(number, kMostValues);
      if (const int code = call(conversion, type, now, native, in_file); code != MPI_SUCCESS)
        return {
            MPI_ERR_CONVERSION,
            base::format("a conversion function of the data representation \"{}\" gave the code {} for {}",
                         name(), code, type.name)};
      number -= now;
      native += now * type.size;
      in_file += now * file_size;
    }
    return {};
  }
  int call(const Conversion& conversion, const BasicType& type, MPI_Count number, std::byte* native,
           std::byte* in_file) const {
    const ProgramRuns program;
    if (auto* const* small = std::get_if<MPI_Datarep_conversion_function*>(&conversion))
      return (*small)(native, type.handle, static_cast<int>(number), in_file, 0, functions_.extra_state);
    return std::get<MPI_Datarep_conversion_function_c*>(conversion)(native, type.handle, number, in_file, 0,
                                                                    functions_.extra_state);
  }

  Functions functions_;
};

int add_representation(const char* function, const char* name,
                       const ProgramRepresentation::Functions& functions) {
  return guarded(function, MPI_FILE_NULL, [&]() -> Error {
    if (Error error = require(
            {{name, "datarep"}, {reinterpret_cast<const void*>(functions.extent), "dtype_file_extent_fn"}});
        !error.ok())
      return error;
    for (const Conversion* const one : {&functions.read, &functions.write}) {
      if (std::visit([](auto* given) { return is_sentinel(reinterpret_cast<const void*>(given)); }, *one))
        return {MPI_ERR_ARG,
                "a conversion function is no address; give a function or MPI_CONVERSION_FN_NULL"};
    }
    const std::size_t length = strnlen(name, MPI_MAX_DATAREP_STRING);
    if (length == 0 || length == MPI_MAX_DATAREP_STRING)
      return {MPI_ERR_ARG, "the name of the data representation is empty or too long"};
    return this_rank().representations.add(
        std::make_shared<ProgramRepresentation>(std::string(name, length), functions));
  });
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Register_datarep(const char* datarep, MPI_Datarep_conversion_function* read_conversion_fn,
                         MPI_Datarep_conversion_function* write_conversion_fn,
                         MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state) {
  return add_representation(__func__, datarep,
                            {read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, extra_state});
}
int MPI_Register_datarep_c(const char* datarep, MPI_Datarep_conversion_function_c* read_conversion_fn,
                           MPI_Datarep_conversion_function_c* write_conversion_fn,
                           MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state) {
  return add_representation(__func__, datarep,
                            {read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, extra_state});
}

}  // extern "C"
