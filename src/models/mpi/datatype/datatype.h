// Datatype: what a handle of type MPI_Datatype stands for. Everything but the name, the attributes and the commit flag is fixed when
// the datatype is made. Predefined datatypes are objects of a rank (predefined.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "weft/mpi/mpi.h"

#include "models/mpi/datatype/bounds.h"
#include "models/mpi/datatype/copy.h"
#include "models/mpi/datatype/layout.h"
#include "models/mpi/datatype/recipe.h"
#include "models/mpi/datatype/signature.h"
#include "models/mpi/datatype/visit.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/objects/object.h"

namespace weft::mpi {

// The properties that a datatype constructor computes, and from which a Datatype is made.
struct Shape {
  Bounds bounds;
  LayoutPointer layout;
  SignaturePointer signature;
};

class Datatype final : public Object {
 public:
  // REQUIRES: shape.bounds.fits(), and a size that fits 64 bits.
  Datatype(Shape shape, Recipe recipe);
  // One that MPI predefines: its handle is a constant of the ABI.
  Datatype(Shape shape, MPI_Datatype constant, const char* name);

  MPI_Datatype handle() const { return handle_; }
  bool is_predefined() const { return recipe_.combiner == MPI_COMBINER_NAMED; }

  MPI_Count size_bytes() const { return size_; }
  MPI_Count lower_bound() const { return lower_bound_; }
  MPI_Count extent() const { return extent_; }
  MPI_Count true_lower_bound() const { return true_lower_bound_; }
  MPI_Count true_extent() const { return true_extent_; }

  // Any number of elements is one range of bytes that begins at the buffer's address.
  bool is_contiguous() const { return contiguous_; }
  // `count` elements are one range of bytes; where it begins, relative to the buffer's address. Nothing if they are not.
  std::optional<MPI_Count> dense_offset(MPI_Count count) const;
  // The packed size of `count` elements; nothing if it does not fit 64 bits.
  std::optional<MPI_Count> packed_size(MPI_Count count) const;

  // Copies the packed bytes [first, last) of `count` elements at `buffer` to `packed`. REQUIRES: packed_size(count), and
  // 0 <= first <= last <= *packed_size(count). `buffer` is host memory, or null for absolute addresses (MPI_BOTTOM).
  void pack(const void* buffer, MPI_Count count, MPI_Count first, MPI_Count last, std::byte* packed) const {
    pack_elements(elements(buffer, count), first, last, packed);
  }
  void pack(const void* buffer, MPI_Count count, std::byte* packed) const {
    pack(buffer, count, 0, count * size_, packed);
  }
  // As pack(), in the other direction: copies the bytes at `packed` to the elements at `buffer`.
  void unpack(void* buffer, MPI_Count count, MPI_Count first, MPI_Count last, const std::byte* packed) const {
    unpack_elements(elements(buffer, count), first, last, packed);
  }
  void unpack(void* buffer, MPI_Count count, const std::byte* packed) const {
    unpack(buffer, count, 0, count * size_, packed);
  }

  // Where the leading `size_bytes` of the packed bytes are, in any memory. REQUIRES: as pack().
  void visit_runs(const void* buffer, MPI_Count count, MPI_Count size_bytes, const RunVisitor& visit) const {
    visit_elements(elements(buffer, count), size_bytes, visit);
  }

  const Shape& shape() const { return shape_; }
  const Layout& layout() const { return *shape_.layout; }
  const Signature& signature() const { return *shape_.signature; }
  const Recipe& recipe() const { return recipe_; }
  // The basic type that the datatype consists of; null if there are several or none.
  const BasicType* only_basic() const { return shape_.signature->only_basic(); }

  bool is_committed() const { return committed_; }
  void commit() {
    committed_ = true;
    if (contiguous_ && size_ <= kMaxPlainBytes) plain_bytes_ = size_;
  }
  // The size of a committed, contiguous datatype of at most kMaxPlainBytes bytes, and 0 for any other: one question for the calls of
  // which most want no more.
  static constexpr MPI_Count kMaxPlainBytes = MPI_Count{1} << 31;
  MPI_Count plain_bytes() const { return plain_bytes_; }
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

 private:
  void store_bounds();
  Elements elements(const void* buffer, MPI_Count count) const {
    return {shape_.layout.get(), count, extent_, reinterpret_cast<std::uintptr_t>(buffer)};
  }

  Shape shape_;
  MPI_Datatype handle_;
  MPI_Count size_ = 0;
  MPI_Count plain_bytes_ = 0;
  MPI_Count lower_bound_ = 0;
  MPI_Count extent_ = 0;
  MPI_Count true_lower_bound_ = 0;
  MPI_Count true_extent_ = 0;
  bool contiguous_ = false;
  bool committed_ = false;
  Recipe recipe_;
  std::string name_;
};

}  // namespace weft::mpi
