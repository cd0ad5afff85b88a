// Tells one listener of a machine which transfers begin and end, and by which path.
//
// Threads: the PE's. Both functions are called inside the machine: they must not start an operation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/machine.h"

namespace weft::machine {

// One of the transfers that transport_use() counts. Where it began, the machine had taken it.
struct TransferEvent {
  std::uint64_t number = 0;  // of this PE's transfers; the same at begin and end
  TransferType type = TransferType::kTagSend;
  TransferPath path = TransferPath::kThroughUcx;
  memory::Kind kind = memory::Kind::kHost;
  std::size_t size_bytes = 0;
};

class TransferObserver {
 public:
  virtual ~TransferObserver() = default;
  // Whether active messages are observed. Asked once, when the observer is set.
  virtual bool observes_active_messages() const { return true; }
  virtual void transfer_began(const TransferEvent& event) = 0;
  // Its buffer is the caller's again. `succeeded` is false after an error or a cancellation.
  virtual void transfer_ended(const TransferEvent& event, bool succeeded) = 0;
};

}  // namespace weft::machine
