#include "collectives/calls.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/format.h"
#include "entry/type_handles.h"
#include "models/mpi/collective/collective_request.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

// The address of a part. Displacements are the program's: they are not checked.
const void* part_at(const void* buffer, MPI_Count displacement) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                       static_cast<std::uintptr_t>(displacement));
}

Error too_far(MPI_Count count) {
  return {MPI_ERR_COUNT,
          base::format("parts of {} elements do not fit the addresses of this machine", count)};
}

}  // namespace

Error PartsArgument::check_arrays_of_parts() const {
  if (is_equal_) return {};
  if (types_ != nullptr && !is_address(static_cast<const void*>(types_)))
    return {MPI_ERR_ARG, "the array of datatypes is no address; give an element for each process"};
  if (is_address(counts_) && is_address(displacements_)) return {};
  return {MPI_ERR_ARG, "an array of counts or displacements is no address; give an element for each process"};
}

bool PartsArgument::one_block(int num_parts, DataView* view) const {
  MPI_Count count = 0;
  if (!is_equal_ || count_ < 0 || __builtin_mul_overflow(MPI_Count{num_parts}, count_, &count)) return false;
  return make_view(buffer_, count, type_, view).ok() && is_one_block(*view);
}

Error PartsArgument::views(int num_parts, Views* views) const {
  views->clear();
  if (num_parts > 0)
    if (Error error = check_arrays_of_parts(); !error.ok()) return error;
  MPI_Count unit = 1;
  if (types_ == nullptr && num_parts > 0) {
    Datatype* type = nullptr;
    if (Error error = find_committed_type(type_, &type); !error.ok()) return error;
    unit = type->extent();
  }
  views->resize(static_cast<std::size_t>(num_parts));
  for (int i = 0; i < num_parts; ++i) {
    const MPI_Count count = is_equal_ ? count_ : counts_[i];
    MPI_Count distance = 0;
    if (!is_equal_) {
      distance = displacements_[i];
    } else if (__builtin_mul_overflow(MPI_Count{i}, count_, &distance)) {
      return too_far(count_);
    }
    const MPI_Datatype type = types_ != nullptr ? types_[i] : type_;
    // An unused part may have any datatype.
    if (types_ != nullptr && count == 0) continue;
    MPI_Count offset = 0;
    if (__builtin_mul_overflow(distance, unit, &offset)) return too_far(distance);
    if (Error error = make_part_view(buffer_, part_at(buffer_, offset), count, type,
                                     &(*views)[static_cast<std::size_t>(i)]);
        !error.ok())
      return error;
  }
  return {};
}

Error check_apart(const DataView& sent, const DataView& received) {
  // A view without bytes is at null, and overlaps nothing.
  const bool overlap = sent.is_dense() && received.is_dense() &&
                       sent.data < received.data + received.size_bytes &&
                       received.data < sent.data + sent.size_bytes;
  if (!overlap) [[likely]]
    return {};
  return {
      MPI_ERR_BUFFER,
      "the send buffer and the receive buffer overlap; pass MPI_IN_PLACE, or buffers that do not overlap"};
}

Error check_apart(const DataView& sent, const Views& received) {
  for (const DataView& part : received)
    if (Error error = check_apart(sent, part); !error.ok()) return error;
  return {};
}

Error check_apart(const Views& sent, const Views& received) {
  const std::size_t count = std::min(sent.size(), received.size());
  for (std::size_t i = 0; i < count; ++i)
    if (Error error = check_apart(sent[i], received[i]); !error.ok()) return error;
  return {};
}

Error run_collective(const Way& way, Communicator& communicator, MakeTask make) {
  if (way.kind == Way::Kind::kWaiting) {
    this_process().run(make());
    return {};
  }
  if (Error error = check_result(way.request); !error.ok()) return error;
  const auto body = [kept = std::move(make), starts = way.starts](Outcome*) -> runtime::Task<> {
    if (starts != nullptr) ++*starts;
    co_await kept();
  };
  return give_request(as_request(Request::make<CollectiveRequest>(communicator.engine().messenger(), body)),
                      &communicator, way.request, way.kind == Way::Kind::kPersistent);
}

bool can_run_at_once(const Way& way, const Communicator& communicator) {
  return way.kind == Way::Kind::kWaiting && !communicator.is_inter() && VirtualRank::current() == nullptr;
}

Error run_at_once(Communicator& communicator, collective::Call call, PackedCombiner* combiner) {
  call.number = static_cast<std::uint32_t>(communicator.next_tag());
  collective::Run run(*communicator.collective_group(), call);
  run.start();
  this_process().wait_until([&] { return run.is_over() && run.has_sent(); });
  if (!run.has_failed()) [[likely]]
    return {};
  if (combiner != nullptr && combiner->error() != nullptr) std::rethrow_exception(combiner->error());
  static_cast<void>(communicator.collective_group());  // throws if the communicator has troubles
  throw TransferFailed(run.is_out_of_memory() ? MPI_ERR_NO_MEM : MPI_ERR_TRUNCATE);
}

Error check_root(const Communicator& communicator, int root) {
  if (communicator.has_peer(root)) return {};
  if (communicator.is_inter() && (root == MPI_ROOT || root == MPI_PROC_NULL)) return {};
  return {MPI_ERR_ROOT, base::format("the root {} does not exist; the ranks are 0 to {}", root,
                                     communicator.num_peers() - 1)};
}

}  // namespace weft::mpi
