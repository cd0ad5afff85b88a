// How the values of a file view are written in the file: "native", "internal", "external32", and those of the program.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "models/mpi/datatype/datatype.h"
#include "models/mpi/datatype/predefined.h"

namespace weft::mpi {

class Representation {
 public:
  explicit Representation(std::string name) : name_(std::move(name)) {}
  virtual ~Representation() = default;

  const std::string& name() const { return name_; }
  // The bytes in the file are those in memory, so nothing is converted.
  virtual bool is_native() const { return false; }
  // The size of one value in the file. Errors: MPI_ERR_CONVERSION for a size that a function of the program gives.
  virtual Error find_size(const BasicType& type, MPI_Count* size) const = 0;
  // Convert `number` values that follow one another on both sides, in host memory. Errors: MPI_ERR_CONVERSION.
  virtual Error to_file(const BasicType& type, MPI_Count number, const std::byte* native,
                        std::byte* in_file) const = 0;
  virtual Error from_file(const BasicType& type, MPI_Count number, const std::byte* in_file,
                          std::byte* native) const = 0;

 private:
  std::string name_;
};
using RepresentationPointer = std::shared_ptr<const Representation>;

// Those of a rank, by their names: at first the three of the standard.
class Representations {
 public:
  Representations();
  // Null if there is none with that name.
  RepresentationPointer find(const std::string& name) const;
  // Errors: MPI_ERR_DUP_DATAREP.
  Error add(RepresentationPointer representation);

 private:
  std::map<std::string, RepresentationPointer> by_name_;
};

// The bytes in a file of one element of a datatype. Errors: MPI_ERR_VALUE_TOO_LARGE, and those of Representation::find_size().
Error find_file_size(const Representation& representation, const Signature& signature, MPI_Count* size);

// The datatype that describes the same elements in the file: a value has the size that it has there, and distances that count
// elements follow. Distances in bytes stay. Unless the representation is native, pairs such as MPI_DOUBLE_INT have no gaps, because those
// in memory differ between machines. Errors: those of the constructors, and those of Representation::find_size().
Error make_file_type(const Representation& representation, PredefinedTypes& types, Datatype& type,
                     Ref<Datatype>* made);

// Convert `count` packed elements of a datatype. REQUIRES: room for them. Errors: MPI_ERR_CONVERSION.
Error convert_to_file(const Representation& representation, const Signature& signature, MPI_Count count,
                      const std::byte* native, std::byte* in_file);
Error convert_from_file(const Representation& representation, const Signature& signature, MPI_Count count,
                        const std::byte* in_file, std::byte* native);

}  // namespace weft::mpi
