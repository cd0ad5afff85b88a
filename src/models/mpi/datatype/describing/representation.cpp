#include "models/mpi/datatype/describing/representation.h"

#include <cstring>

#include "base/format.h"
#include "models/mpi/datatype/checked.h"
#include "models/mpi/datatype/describing/constructors.h"
#include "models/mpi/datatype/describing/remaking.h"
#include "models/mpi/datatype/external32.h"

namespace weft::mpi {

namespace {

class Native final : public Representation {
 public:
  using Representation::Representation;
  bool is_native() const override { return true; }
  Error find_size(const BasicType& type, MPI_Count* size) const override {
    *size = type.size;
    return {};
  }
  Error to_file(const BasicType& type, MPI_Count number, const std::byte* native,
                std::byte* in_file) const override {
    std::memcpy(in_file, native, static_cast<std::size_t>(number * type.size));
    return {};
  }
  Error from_file(const BasicType& type, MPI_Count number, const std::byte* in_file,
                  std::byte* native) const override {
    return to_file(type, number, in_file, native);
  }
};

class External32 final : public Representation {
 public:
  using Representation::Representation;
  Error find_size(const BasicType& type, MPI_Count* size) const override {
    *size = type.external_size;
    return {};
  }
  Error to_file(const BasicType& type, MPI_Count number, const std::byte* native,
                std::byte* in_file) const override {
    if (write_external32(type, number, native, in_file)) return {};
    return not_in_external32(type);
  }
  Error from_file(const BasicType& type, MPI_Count number, const std::byte* in_file,
                  std::byte* native) const override {
    read_external32(type, number, in_file, native);
    return {};
  }
};

}  // namespace

Representations::Representations() {
  for (const char* name : {"native", "internal"}) by_name_[name] = std::make_shared<Native>(name);
  by_name_["external32"] = std::make_shared<External32>("external32");
}

RepresentationPointer Representations::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Error Representations::add(RepresentationPointer representation) {
  const std::string name = representation->name();
  if (by_name_.emplace(name, std::move(representation)).second) return {};
  return {MPI_ERR_DUP_DATAREP,
          base::format("there is a data representation \"{}\" already; give another name", name)};
}

Error find_file_size(const Representation& representation, const Signature& signature, MPI_Count* size) {
  Wide sum = 0;
  for (const Signature::Piece& piece : signature.pieces) {
    MPI_Count one = 0;
    Error error = piece.basic != nullptr ? representation.find_size(*piece.basic, &one)
                                         : find_file_size(representation, *piece.nested, &one);
    if (!error.ok()) return error;
    sum += Wide{one} * piece.repeat;
    if (!fits_count(sum))
      return {MPI_ERR_VALUE_TOO_LARGE, "the size of the datatype in the file does not fit 64 bits"};
  }
  *size = static_cast<MPI_Count>(sum);
  return {};
}

Error make_file_type(const Representation& representation, PredefinedTypes& types, Datatype& type,
                     Ref<Datatype>* made) {
  *made = Ref<Datatype>(type);
  if (representation.is_native()) return {};
  Recipe recipe = type.recipe();
  if (recipe.datatypes.empty()) {
    MPI_Count size = 0;
    if (Error error = find_file_size(representation, type.signature(), &size); !error.ok()) return error;
    return size == type.extent() ? Error()
                                 : make_contiguous(size, *types.find(MPI_BYTE), CallForm::kLarge, made);
  }
  bool is_same = true;
  for (Ref<Datatype>& part : recipe.datatypes) {
    Ref<Datatype> in_file;
    if (Error error = make_file_type(representation, types, *part, &in_file); !error.ok()) return error;
    is_same &= &*in_file == &*part;
    part = std::move(in_file);
  }
  if (is_same) return {};
  Shape shape;
  if (Error error = remake_shape(recipe, types, &shape); !error.ok()) return error;
  *made = Ref<Datatype>::adopt(new Datatype(std::move(shape), std::move(recipe)));
  return {};
}

Error convert_to_file(const Representation& representation, const Signature& signature, MPI_Count count,
                      const std::byte* native, std::byte* in_file) {
  Error error;
  for_each_basic_run(signature, count, [&](const BasicType& type, MPI_Count number) {
    MPI_Count size = 0;
    if (error.ok()) error = representation.find_size(type, &size);
    if (error.ok()) error = representation.to_file(type, number, native, in_file);
    native += number * type.size;
    in_file += number * size;
  });
  return error;
}

Error convert_from_file(const Representation& representation, const Signature& signature, MPI_Count count,
                        const std::byte* in_file, std::byte* native) {
  Error error;
  for_each_basic_run(signature, count, [&](const BasicType& type, MPI_Count number) {
    MPI_Count size = 0;
    if (error.ok()) error = representation.find_size(type, &size);
    if (error.ok()) error = representation.from_file(type, number, in_file, native);
    native += number * type.size;
    in_file += number * size;
  });
  return error;
}

}  // namespace weft::mpi
