// The persistent form of a buffer that is sent, or received into, again and again: registered with the
// network once and for all, in place of at each message or at each look into the network's own cache.
//
//   weft::RegisteredMemory registered(runtime(), halo_);      // a member beside halo_
//   channel.send(halo_);  blocks[i].send<&Block::halo>(weft::nocopy(halo_));    // as ever, on either side
//
// Whatever lies inside it is then sent and received through that registration, on channels and as payloads.
// With a channel nothing is left to do per message but the message itself: its ends exchanged their tags
// once.
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
  // Of any kind: the address tells which. Throws Error when the network refuses it. REQUIRES: the memory
  // stays as long as this, and nothing in flight uses it when this goes.
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
