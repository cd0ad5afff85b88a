// A put that is in flight and completes when its data is visible at the peer: the end of the put starts the flush.
//
// The machine keeps one to spare. When a put is pending, the object is on its own until its put has ended; then it becomes the
// spare one again, or deletes itself if the machine has another.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "machine/machine.h"

namespace weft::machine {

class FlushedPut : public base::Completion {
 public:
  using Spare = std::unique_ptr<FlushedPut>;

  // Both must outlive it.
  FlushedPut(Machine& machine, Spare& spare)
      : base::Completion([](base::Completion* self, base::Status status, std::size_t size_bytes) {
          static_cast<FlushedPut*>(self)->put_ended(std::move(status), size_bytes);
        }),
        machine_(machine),
        spare_(spare) {}

  // Takes it out of `spare`: its put is pending. The flush will have that completion.
  static void wait_for_put(Spare& spare, int pe, base::Completion* completion) {
    FlushedPut* const put = spare.release();
    put->pe_ = pe;
    put->completion_ = completion;
  }

 private:
  void put_ended(base::Status status, std::size_t size_bytes) {
    base::Completion* const completion = completion_;
    if (status.ok()) status = machine_.flush(pe_, completion);
    if (spare_ == nullptr) {
      spare_.reset(this);
    } else {
      delete this;
    }
    if (!status.is_pending()) completion->function(completion, std::move(status), size_bytes);
  }

  Machine& machine_;
  Spare& spare_;
  int pe_ = -1;
  base::Completion* completion_ = nullptr;
};

}  // namespace weft::machine
