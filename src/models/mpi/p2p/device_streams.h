// Streams for the device work of messages. A stream belongs to one operation at a time, so a busy stream of the program that one
// operation waits for delays no other operation.
//
// Threads: the PE's. Streams are kept until the end: creating one costs more than a small copy.
#pragma once

#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "memory/memory.h"

namespace weft::mpi {

class DeviceStreams {
 public:
  // The use of one stream. The next user's work comes behind the work that is queued when the lease ends.
  class Lease {
   public:
    Lease() = default;
    Lease(DeviceStreams& owner, memory::Place place, memory::StreamHandle handle)
        : owner_(&owner), place_(place), handle_(handle) {}
    Lease(Lease&& other) noexcept { swap(other); }
    Lease& operator=(Lease&& other) noexcept {
      swap(other);
      return *this;
    }
    ~Lease() {
      if (owner_ != nullptr) owner_->idle_.push_back({place_, handle_});
    }
    memory::StreamHandle handle() const { return handle_; }

   private:
    void swap(Lease& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(place_, other.place_);
      std::swap(handle_, other.handle_);
    }
    DeviceStreams* owner_ = nullptr;
    memory::Place place_;
    memory::StreamHandle handle_ = nullptr;
  };

  explicit DeviceStreams(memory::Memory& memory) : memory_(memory) {}
  ~DeviceStreams();
  DeviceStreams(const DeviceStreams&) = delete;
  DeviceStreams& operator=(const DeviceStreams&) = delete;

  // A stream of that device whose work comes after the work that is queued on `after` now; null: after nothing.
  // REQUIRES: device memory.
  base::Result<Lease> take(memory::Place place, memory::StreamHandle after);

 private:
  struct Stream {
    memory::Place place;
    memory::StreamHandle handle;
  };

  base::Result<Lease> find_or_create(memory::Place place);

  memory::Memory& memory_;
  std::vector<Stream> idle_;
};

}  // namespace weft::mpi
