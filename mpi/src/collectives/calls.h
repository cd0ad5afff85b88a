// Common code of the entry points of collectives: the three ways of a call, and the arguments that describe parts of a buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>

#include "weft/mpi/mpi.h"

#include "communication/communication.h"
#include "models/mpi/collective/block_collectives.h"
#include "models/mpi/collective/data_movement.h"
#include "models/mpi/communicators/communicator.h"

namespace weft::mpi {

// MPI_X waits; MPI_IX gives a request that is started; MPI_X_init gives one that is not.
struct Way {
  enum class Kind { kWaiting, kStarted, kPersistent };
  MPI_Comm comm;
  Kind kind;
  MPI_Request* request;
  std::shared_ptr<std::uint32_t> starts;  // of a persistent operation: how often it has been started

  static Way waiting(MPI_Comm comm) { return {comm, Kind::kWaiting, nullptr, nullptr}; }
  static Way started(MPI_Comm comm, MPI_Request* request) { return {comm, Kind::kStarted, request, nullptr}; }
  static Way persistent(MPI_Comm comm, MPI_Request* request) {
    return {comm, Kind::kPersistent, request, std::make_shared<std::uint32_t>(0)};
  }
};

// Elements of one datatype.
struct ElementsArgument {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;

  bool is_in_place() const { return buffer == MPI_IN_PLACE; }
  Error view(DataView* view) const { return make_view(buffer, count, type, view); }
};

// A part of a buffer for each process.
class PartsArgument {
 public:
  // Parts of one size, one after another.
  static PartsArgument equal(const void* buffer, MPI_Count count, MPI_Datatype type) {
    PartsArgument parts(buffer, count, nullptr, nullptr, type, nullptr);
    parts.is_equal_ = true;
    return parts;
  }
  // Displacements are in extents of the datatype.
  static PartsArgument varying(const void* buffer, const MPI_Count* counts, const MPI_Aint* displacements,
                               MPI_Datatype type) {
    return {buffer, 0, counts, displacements, type, nullptr};
  }
  // Displacements are in bytes.
  static PartsArgument of_types(const void* buffer, const MPI_Count* counts, const MPI_Aint* displacements,
                                const MPI_Datatype* types) {
    return {buffer, 0, counts, displacements, MPI_DATATYPE_NULL, types};
  }

  bool is_in_place() const { return buffer_ == MPI_IN_PLACE; }
  // Whether all parts of all processes have one size. (Null counts do not tell: they are significant at the root alone.)
  bool is_equal() const { return is_equal_; }
  const void* buffer() const { return buffer_; }
  // Of a part. REQUIRES: is_equal().
  MPI_Count count() const { return count_; }
  MPI_Datatype type() const { return type_; }
  // The view of all parts together, if they have one size and lie without gaps in host memory; false if not, or if there is an error.
  bool one_block(int num_parts, DataView* view) const;
  // Errors: as make_view(), and MPI_ERR_ARG for arrays that are null.
  Error views(int num_parts, Views* views) const;

 private:
  Error check_arrays_of_parts() const;

  PartsArgument(const void* buffer, MPI_Count count, const MPI_Count* counts, const MPI_Aint* displacements,
                MPI_Datatype type, const MPI_Datatype* types)
      : buffer_(buffer),
        count_(count),
        counts_(counts),
        displacements_(displacements),
        type_(type),
        types_(types) {}

  const void* buffer_;
  MPI_Count count_;
  const MPI_Count* counts_;
  const MPI_Aint* displacements_;
  MPI_Datatype type_;
  const MPI_Datatype* types_;
  bool is_equal_ = false;
};

// Makes the coroutine of one execution.
using MakeTask = std::function<runtime::Task<>()>;

// Runs the collective to its end, or gives the program a request for it.
Error run_collective(const Way& way, Communicator& communicator, MakeTask make);

// Whether run_at_once() can do it: the call waits, and the rank has its process for itself.
bool can_run_at_once(const Way& way, const Communicator& communicator);
// Runs a call of the engine to its end, without a coroutine. `combiner`: of a reduction. REQUIRES: can_run_at_once(); the data is small,
// see block_collectives.h.
Error run_at_once(Communicator& communicator, collective::Call call, PackedCombiner* combiner = nullptr);
// Memory of a call for blocks of the engine: on the stack if they are small.
class CallBlocks {
 public:
  explicit CallBlocks(std::size_t size_bytes) {
    if (size_bytes > sizeof small_) {
      large_.reset(new (std::nothrow) std::byte[size_bytes]);
      data_ = large_.get();
    }
  }
  // Null without memory: the coroutine of the collective tells the other processes.
  std::byte* data() { return data_; }

 private:
  std::byte* data_ = small_;
  std::unique_ptr<std::byte[]> large_;
  alignas(16) std::byte small_[2048];
};
// Whether the engine can work in the memory of the view itself.
inline bool is_one_block(const DataView& view) { return view.is_dense() && view.place.is_host(); }

// The collective contexts of the call.
inline Communicator::ContextPair next_collective_contexts(Communicator& communicator, const Way& way) {
  using Kind = Communicator::CallKind;
  return communicator.next_collective_contexts(
      way.kind == Way::Kind::kWaiting ? Kind::kWaits : Kind::kGivesRequest, way.starts);
}

// Errors: MPI_ERR_BUFFER if the send buffer and the receive buffer share memory. Elements with gaps are not compared. Of two lists of
// parts, each part is compared with its counterpart alone.
Error check_apart(const DataView& sent, const DataView& received);
Error check_apart(const DataView& sent, const Views& received);
Error check_apart(const Views& sent, const Views& received);

// Errors: MPI_ERR_ROOT.
Error check_root(const Communicator& communicator, int root);

}  // namespace weft::mpi
