// Troubles: the processes of the job that have been lost, and what that and MPIX_Comm_revoke mean for operations.
//
// A communicator has a record from its first loss or its revocation on. A record outlives its communicator, because messages for it may still
// come. Each operation asks fate_of_send() or fate_of_receive(): they tell an operation that cannot complete.
//
// Threads: the PE's. REQUIRES: each rank has a PE for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "models/mpi/objects/members.h"

namespace weft::mpi {

class Troubles {
 public:
  // Of the communicators with a number: the first number of a communicator, and that of the local group of an intercommunicator.
  struct Record {
    bool is_revoked = false;
    // The processes that messages go to; null until the communicator is known here, and for the number of a local group.
    MembersPointer peers;
    // The lost members, as ranks in MPI_COMM_WORLD, in the order in which this process was told. The program has acknowledged the first ones.
    std::vector<int> lost;
    std::size_t num_acknowledged = 0;

    bool has_unacknowledged() const { return num_acknowledged < lost.size(); }
  };

  // Whether there is any loss or revocation. If not, no function below needs to be asked.
  bool any() const { return any_; }
  bool is_lost(int rank) const {
    return static_cast<std::size_t>(rank) < is_lost_.size() && is_lost_[static_cast<std::size_t>(rank)];
  }
  // In the order in which this process was told.
  const std::vector<int>& lost() const { return lost_; }
  // Returns false if it is known.
  bool lose(int rank);

  // Null if there is no record. `base`: the number of a communicator.
  const Record* find(std::uint64_t base) const;
  Record& record(std::uint64_t base) {
    any_ = true;
    return records_[base];
  }
  std::size_t num_records() const { return records_.size(); }
  bool is_revoked(std::uint64_t base) const {
    const Record* const found = find(base);
    return found != nullptr && found->is_revoked;
  }

  // MPI_SUCCESS if the operation may complete; else the error class that ends it. `rank` and `from`: in MPI_COMM_WORLD; `from` is -1 if it
  // is not known. `source`: in the communicator, or -1 for any. The class is MPIX_ERR_PROC_FAILED_PENDING if the receive
  // may complete after an acknowledgement.
  int fate_of_send(std::uint64_t context, int rank) const;
  int fate_of_receive(std::uint64_t context, int source, int from) const;
  // Of collectives: a message of theirs that comes is for no operation any more.
  int fate_of_collectives(std::uint64_t base) const;
  // Whether messages with that context are dropped when they come.
  bool drops(std::uint64_t context) const;

  // Tells the others of a revocation: for a communicator that is made when it has been revoked already.
  std::function<void(std::uint64_t base, const std::vector<int>& members)> pass_on_revocation;

 private:
  static constexpr int kUnknown = -1;

  bool any_ = false;
  std::vector<bool> is_lost_;
  std::vector<int> lost_;
  std::unordered_map<std::uint64_t, Record> records_;
};

}  // namespace weft::mpi
