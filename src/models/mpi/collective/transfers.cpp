#include "models/mpi/collective/transfers.h"

#include <cstddef>
#include <utility>

#include "weft/mpi/mpi.h"

#include "base/format.h"

namespace weft::mpi {
namespace {

template <class T>
Ref<Request> base_of(Ref<T> request) {
  return Ref<Request>::adopt(request.leave());
}

// Between two ranges of host memory, through packed bytes if both have gaps.
void copy_in_host_memory(const DataView& from, const DataView& to) {
  if (from.size_bytes == 0) return;
  if (from.is_dense()) {
    to.unpack(from.data, from.size_bytes);
  } else if (to.is_dense()) {
    from.pack(to.data);
  } else {
    std::vector<std::byte> packed(from.size_bytes);
    from.pack(packed.data());
    to.unpack(packed.data(), packed.size());
  }
}

}  // namespace

TransferFailed::TransferFailed(int error_class)
    : base::Error(base::StatusCode::kInternal,
                  base::format(
                      "a message of a collective operation failed with error class {}; do all processes give "
                      "the same number of elements?",
                      error_class)),
      error_class_(error_class) {}

void Transfers::send(int to, const DataView& view) {
  if (to != MPI_PROC_NULL) started_.push_back({base_of(circle_.send(to, view))});
}

void Transfers::receive(int from, const DataView& view) {
  if (from != MPI_PROC_NULL)
    started_.push_back({base_of(circle_.receive(from, view)), static_cast<std::int64_t>(view.size_bytes)});
}

// An error is kept for wait(): transfers that are in flight use the program's memory.
void Transfers::copy(const DataView& from, const DataView& to) {
  if (from.size_bytes > to.size_bytes) {
    failed_ = MPI_ERR_TRUNCATE;
  } else if (from.place.is_host() && to.place.is_host()) {
    copy_in_host_memory(from, to);
  } else {
    receive(circle_.rank(), to);
    send(circle_.rank(), from);
  }
}

runtime::Task<> Transfers::wait() {
  for (const Started& one : started_) {
    const Outcome outcome = co_await circle_.completed(*one.request);
    int error = outcome.error;
    if (error == MPI_SUCCESS && one.expected_bytes >= 0 && outcome.size_bytes != one.expected_bytes)
      error = MPI_ERR_TRUNCATE;
    if (failed_ == MPI_SUCCESS) failed_ = error;
  }
  started_.clear();
  if (failed_ != MPI_SUCCESS) throw TransferFailed(std::exchange(failed_, MPI_SUCCESS));
}

runtime::Task<int> error_of_transfer(runtime::Task<> transfer) {
  int error = MPI_SUCCESS;
  try {
    co_await std::move(transfer);
  } catch (const TransferFailed& failure) {
    error = failure.error_class();
  }
  co_return error;
}

runtime::Task<> copy_data(Circle local, DataView from, DataView to) {
  if (from.size_bytes > to.size_bytes) throw TransferFailed(MPI_ERR_TRUNCATE);
  if (from.place.is_host() && to.place.is_host()) {
    copy_in_host_memory(from, to);
    co_return;
  }
  co_await swap_data(local, local.rank(), from, local.rank(), to);
}

runtime::Task<> send_one(Circle circle, int to, DataView view) {
  Transfers transfers(circle);
  transfers.send(to, view);
  co_await transfers.wait();
}

runtime::Task<> receive_one(Circle circle, int from, DataView view) {
  Transfers transfers(circle);
  transfers.receive(from, view);
  co_await transfers.wait();
}

runtime::Task<> swap_data(Circle circle, int to, DataView out, int from, DataView in) {
  Transfers transfers(circle);
  transfers.receive(from, in);
  transfers.send(to, out);
  co_await transfers.wait();
}

}  // namespace weft::mpi
