// What the coroutines of collectives are written with: several transfers at once, and copies within a process.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/base/error.h"
#include "weft/runtime/task.h"

#include "models/mpi/collective/circle.h"
#include "models/mpi/p2p/data_view.h"

namespace weft::mpi {

// One for each process of a circle. A view without bytes is sent too.
using Views = std::vector<DataView>;

// The own part of a process, which can be in its place already.
struct OwnView {
  DataView view;
  bool in_place = false;
};

// A message of a collective has failed with that error class of mpi.h.
class TransferFailed final : public base::Error {
 public:
  explicit TransferFailed(int error_class);
  int error_class() const noexcept { return error_class_; }

 private:
  int error_class_;
};

// Transfers that are under way at the same time.
class Transfers {
 public:
  explicit Transfers(Circle circle) : circle_(std::move(circle)) {}

  // `to` and `from` may be MPI_PROC_NULL: nothing is done.
  void send(int to, const DataView& view);
  void receive(int from, const DataView& view);
  // Within this process, between any kinds of memory. REQUIRES: a circle of the own group.
  void copy(const DataView& from, const DataView& to);
  // Returns when all have ended. Throws TransferFailed if one has failed, or if a message had fewer bytes than its receive.
  runtime::Task<> wait();

 private:
  Circle circle_;
  struct Started {
    Ref<Request> request;
    std::int64_t expected_bytes = -1;  // of a receive: a message of another size is an error
  };
  std::vector<Started> started_;
  int failed_ = 0;  // an error class
};

// Waits for a transfer that may fail and returns its error class: for steps after which this process still has to serve the others.
runtime::Task<int> error_of_transfer(runtime::Task<> transfer);
// Copies within this process, between any kinds of memory. `local`: a circle of the own group.
runtime::Task<> copy_data(Circle local, DataView from, DataView to);
runtime::Task<> send_one(Circle circle, int to, DataView view);
runtime::Task<> receive_one(Circle circle, int from, DataView view);
// Sends and receives at the same time.
runtime::Task<> swap_data(Circle circle, int to, DataView out, int from, DataView in);

}  // namespace weft::mpi
