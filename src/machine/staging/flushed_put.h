// A put that is in flight and completes when its data is visible at the peer: the end of the put starts the flush.
//
// Threads: the PE's. It deletes itself when the flush has begun, or when the put has failed.
#pragma once

#include <utility>

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "machine/machine.h"

namespace weft::machine {

class FlushedPut : public base::Completion {
 public:
  explicit FlushedPut(Machine& machine)
      : base::Completion([](base::Completion* self, base::Status status, std::size_t size_bytes) {
          static_cast<FlushedPut*>(self)->put_ended(std::move(status), size_bytes);
        }),
        machine_(machine) {}

  // The put is pending: what its end does.
  void is_pending(int pe, base::Completion* completion) {
    pe_ = pe;
    completion_ = completion;
  }

 private:
  void put_ended(base::Status status, std::size_t size_bytes) {
    base::Completion* const completion = completion_;
    if (status.ok()) status = machine_.flush(pe_, completion);
    delete this;
    if (!status.is_pending()) completion->function(completion, std::move(status), size_bytes);
  }

  Machine& machine_;
  int pe_ = -1;
  base::Completion* completion_ = nullptr;
};

}  // namespace weft::machine
