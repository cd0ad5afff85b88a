// Elements of a datatype as the memory of a message, and memory for elements that a reduction works on.
#pragma once

#include <cstddef>
#include <memory>

#include "models/mpi/datatype/datatype.h"
#include "models/mpi/p2p/data_view.h"

namespace weft::mpi {

// How elements with gaps lie in memory. It keeps the datatype.
std::shared_ptr<const ElementLayout> element_layout(Datatype& type);
// `count` elements in host memory. The view keeps the datatype. REQUIRES: type.packed_size(count).
DataView typed_view(Datatype& type, void* buffer, MPI_Count count);

// Host memory for elements of a datatype, laid out as in a buffer of the program.
class ScratchElements {
 public:
  ScratchElements(Ref<Datatype> type, MPI_Count count);

  // The address that a program would pass as the buffer of these elements.
  std::byte* buffer() const { return buffer_; }
  DataView view() const { return part(0, count_); }
  // Whether an operator that works on `count` elements of `type` stays inside.
  bool has_form(const Datatype& type, MPI_Count count) const {
    return count_ == count && type_->size_bytes() == type.size_bytes() && type_->extent() == type.extent() &&
           type_->true_lower_bound() == type.true_lower_bound() && type_->true_extent() == type.true_extent();
  }
  // `count` elements from element `first` on. No bytes if there are none.
  DataView part(MPI_Count first, MPI_Count count) const {
    if (memory_ == nullptr) return {};
    return typed_view(*type_, buffer_ + first * type_->extent(), count);
  }

 private:
  Ref<Datatype> type_;
  MPI_Count count_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* buffer_ = nullptr;
};

}  // namespace weft::mpi
