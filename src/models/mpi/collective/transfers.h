// The tools of the coroutines of collectives: transfers, copies within a process, and the rules after an error.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "weft/runtime/task.h"

#include "models/mpi/communicators/collective_context.h"
#include "models/mpi/p2p/data_view.h"

namespace weft::mpi {

// One for each process of a context. A view without bytes is sent too.
using Views = std::vector<DataView>;

// The own part of a process, which can be in its place already.
struct OwnView {
  DataView view;
  bool in_place = false;
};

// The transfers of a process in a collective operation, in steps. Those of a step are under way at the same time.
//
//     Transfers transfers(context);
//     transfers.receive(context.left(), in);
//     transfers.send(context.right(), out);
//     co_await transfers.wait();    // the end of a step; others may follow
//     transfers.throw_if_failed();  // after the last step
//
// After an error a process still takes all of its steps, because the others wait for its messages. It sends messages without bytes
// from then on, which fail at receivers that expect some, and copies and computes nothing. A process that cannot even start a message
// without bytes leaves.
class Transfers {
 public:
  explicit Transfers(CollectiveContext context) : context_(std::move(context)) {}
  // No message lands in memory that goes with the operation: receives that no message has matched are cancelled.
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  const CollectiveContext& context() const { return context_; }

  // `to` and `from` may be MPI_PROC_NULL: nothing is done. A message with fewer bytes than its receive is an error.
  void send(int to, const DataView& view);
  void receive(int from, const DataView& view);
  // Within this process, between any kinds of memory. Other sizes on both sides are an error. REQUIRES: a context of the own group.
  void copy(const DataView& from, const DataView& to);
  // Calls `work`, which this process does alone. An exception of it is an error.
  template <class Work>
  void compute(const Work& work) {
    if (has_failed()) return;
    try {
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  // Whether wait() has something to wait for.
  bool is_under_way() const { return !started_.empty(); }
  // Returns when all transfers of the step have ended.
  runtime::Task<> wait();
  // Waits for a step that throws its error.
  runtime::Task<> take(runtime::Task<> step);

  bool has_failed() const { return error_ != nullptr; }
  const std::exception_ptr& error() const { return error_; }
  // The first error counts.
  void fail(int error_class);
  // `error` tells what the first one came from.
  void replace_error(std::exception_ptr error) { error_ = std::move(error); }
  // An error in the transfers of another context is one here too.
  void fail_with(const Transfers& other) {
    if (!has_failed()) error_ = other.error_;
  }
  // The first error: TransferFailed, or the exception of compute().
  void throw_if_failed() const {
    if (has_failed()) std::rethrow_exception(error_);
  }

 private:
  void start_send(int to, const DataView& view);

  CollectiveContext context_;
  struct Started {
    Ref<Request> request;
    std::int64_t expected_bytes = -1;  // of a receive: a message of another size is an error
  };
  std::vector<Started> started_;
  std::exception_ptr error_;
};

// Copies within this process, between any kinds of memory. `local`: a context of the own group.
runtime::Task<> copy_data(CollectiveContext local, DataView from, DataView to);

}  // namespace weft::mpi
