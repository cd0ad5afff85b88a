// For calls that work on the memory of one process: they take device memory too, and return when they are done.
#pragma once

#include <memory>

#include "weft/mpi/mpi.h"

#include "models/mpi/collective/typed_view.h"
#include "models/mpi/datatype/datatype.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/p2p/data_view.h"

namespace weft::mpi {

// Whether the elements are in device memory. Before MPI_Init and after MPI_Finalize all memory counts as the host's.
bool is_on_device(const Datatype& type, const void* buffer, MPI_Count count);

// Copies between any kinds of memory, after the work queued on the streams of the views.
Error copy_now(const DataView& from, const DataView& to);

// Elements of the program in host memory: its buffer, or a copy of one on a device.
class HostElements {
 public:
  HostElements(Datatype& type, void* buffer, MPI_Count count);

  // The buffer in host memory, as a program would pass it.
  void* buffer() const { return copy_ == nullptr ? buffer_ : copy_->buffer(); }
  // Both do nothing without a copy.
  Error read() const;
  Error write_back() const;

 private:
  DataView device_view() const;

  Datatype& type_;
  void* buffer_;
  MPI_Count count_;
  std::unique_ptr<ScratchElements> copy_;
};

}  // namespace weft::mpi
