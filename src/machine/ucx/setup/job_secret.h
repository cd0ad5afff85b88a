// The job's secret: 16 random bytes that PE 0 draws and the bootstrap gives to every PE. They precede the header
// of each active message and show that it comes from a PE of this job. A message without them reaches no handler.
//
// The secret protects the handlers. It does not protect the memory of the PEs: UCX's TCP transport serves puts
// below the handlers and checks no address. It does not encrypt anything either. A job that uses TCP therefore
// needs a network that the site trusts (docs/security.md).
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
  // kCorrupt if the size is not kBytes.
  static base::Result<JobSecret> from_bytes(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const { return bytes_; }

  // Whether `message` begins with the secret. Takes the same time for each wrong secret, so that the time does
  // not tell how many bytes were right.
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
