// What proves that an active message comes from a PE of this job, where others may reach its sockets: bytes
// that PE 0 draws at random and the bootstrap hands to every PE, in front of each active message's header.
//
// It keeps out whoever cannot read the job's traffic; it does not hide the traffic.
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
