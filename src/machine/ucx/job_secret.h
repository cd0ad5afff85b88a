// What shows that an active message comes from a PE of this job: 16 random bytes of PE 0 that the bootstrap
// hands to every PE, in front of each active message's header. A message without them reaches no handler.
//
// The secret protects the handlers, not the memory of the PEs, and it hides nothing: UCX's TCP transport writes
// what a peer puts to the address that the peer names, before any handler is asked. A job that uses TCP
// therefore needs a network that the site trusts (docs/security.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "weft/base/status.h"

namespace weft::machine::ucx {

class JobSecret {
 public:
  static constexpr std::size_t kBytes = 16;

  static base::Result<JobSecret> draw();
  // kCorrupt unless there are exactly kBytes.
  static base::Result<JobSecret> from_bytes(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const { return bytes_; }

  // Whether `message` begins with it; takes the same time for every answer.
  bool opens(std::span<const std::byte> message) const {
    if (message.size() < kBytes) return false;
    auto difference = std::byte{0};
    for (std::size_t i = 0; i < kBytes; ++i) difference |= message[i] ^ bytes_[i];
    return difference == std::byte{0};
  }

 private:
  std::array<std::byte, kBytes> bytes_{};
};

}  // namespace weft::machine::ucx
