#include "models/mpi/collective/transfers.h"

#include <cstddef>
#include <utility>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

void Transfers::fail(int error_class) {
  if (!has_failed()) error_ = std::make_exception_ptr(TransferFailed(error_class));
}

Transfers::~Transfers() {
  for (const Started& one : started_) {
    if (!one.request->is_complete()) one.request->cancel();
  }
}

void Transfers::send(int to, const DataView& view) {
  if (to == MPI_PROC_NULL) return;
  compute([&] { start_send(to, view); });
  if (has_failed()) start_send(to, {});
}

// Throws, or fails, if nothing has been sent.
void Transfers::start_send(int to, const DataView& view) {
  const Ref<SendRequest> request = context_.send(to, view);
  if (request->is_complete() && request->outcome().error != MPI_SUCCESS)
    throw TransferFailed(request->outcome().error);
  started_.push_back({as_request(request)});
}

void Transfers::receive(int from, const DataView& view) {
  if (from != MPI_PROC_NULL)
    started_.push_back(
        {as_request(context_.receive(from, view)), static_cast<std::int64_t>(view.size_bytes)});
}

void Transfers::copy(const DataView& from, const DataView& to) {
  if (has_failed()) return;
  if (from.size_bytes != to.size_bytes) {
    fail(MPI_ERR_TRUNCATE);
  } else if (from.place.is_host() && to.place.is_host()) {
    compute([&] { from.copy_to(to); });
  } else {
    receive(context_.rank(), to);
    send(context_.rank(), from);
  }
}

runtime::Task<> Transfers::wait() {
  for (const Started& one : started_) {
    const Outcome outcome = co_await context_.completed(*one.request);
    if (outcome.error != MPI_SUCCESS) {
      fail(outcome.error);
    } else if (one.expected_bytes >= 0 && outcome.size_bytes != one.expected_bytes) {
      fail(MPI_ERR_TRUNCATE);
    }
  }
  started_.clear();
}

runtime::Task<> Transfers::take(runtime::Task<> step) {
  try {
    co_await std::move(step);
  } catch (...) {
    if (!has_failed()) error_ = std::current_exception();
  }
}

runtime::Task<> copy_data(CollectiveContext local, DataView from, DataView to) {
  Transfers transfers(std::move(local));
  transfers.copy(from, to);
  co_await transfers.wait();
  transfers.throw_if_failed();
}

}  // namespace weft::mpi
