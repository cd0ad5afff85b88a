// Registers memory with the network for the lifetime of an object, for a buffer that is used in many transfers.
// Without it, the network registers the memory, or looks it up in its own cache, at each transfer.
//
//   weft::RegisteredMemory registered(runtime(), halo_);      // a member beside halo_
//   channel.send(halo_);  blocks[i].send<&Block::halo>(weft::nocopy(halo_));    // unchanged
//
// Every transfer from or into a part of the memory uses the registration: messages of channels and attachments
// of calls. The sender and the receiver each register their own side; either may do without.
//
// Threads: the PE's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <ranges>

#include "weft/memory/buffer.h"

namespace weft::machine {
struct RemoteMemory;
}

namespace weft::runtime {

class Runtime;

class RegisteredMemory {
 public:
  // Memory of any kind; the kind is found from the address. Throws Error if the network refuses it. REQUIRES: the
  // memory exists as long as this object, and no operation in flight uses it when this object is destroyed.
  template <std::ranges::contiguous_range Range>
    requires std::ranges::borrowed_range<Range>
  RegisteredMemory(Runtime& runtime, Range&& values)
      : RegisteredMemory(runtime, std::ranges::data(values),
                         std::ranges::size(values) * sizeof(std::ranges::range_value_t<Range>)) {}
  RegisteredMemory(Runtime& runtime, const void* data, std::size_t size_bytes);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

 private:
  Runtime& runtime_;
  std::unique_ptr<machine::RemoteMemory> memory_;
};

}  // namespace weft::runtime
