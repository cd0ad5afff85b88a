// StreamRequest: what MPIX_Isend_enqueue and MPIX_Irecv_enqueue give. MPIX_Wait_enqueue queues the message on the stream; other calls refuse
// the request.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <utility>

#include "models/mpi/communicators/communicator.h"
#include "models/mpi/objects/object.h"
#include "models/mpi/p2p/request.h"

namespace weft::mpi {

// A receive that has been started, for StreamTransfers. Empty: nothing.
struct StartedReceive {
  int peer = -1;
  std::uint64_t number = 0;  // of the receives from the peer
};

class StreamRequest final : public Object {
 public:
  // `outcome` is known: the sizes and tags of both ends are equal. `receive`: empty for a send.
  StreamRequest(Ref<Communicator> communicator, const Outcome& outcome, StartedReceive receive)
      : Object(ObjectKind::kStreamRequest),
        communicator_(std::move(communicator)),
        outcome_(outcome),
        receive_(receive) {}

  Communicator& communicator() const { return *communicator_; }
  const Outcome& outcome() const { return outcome_; }
  StartedReceive receive() const { return receive_; }

 private:
  Ref<Communicator> communicator_;
  Outcome outcome_;
  StartedReceive receive_;
};

}  // namespace weft::mpi
