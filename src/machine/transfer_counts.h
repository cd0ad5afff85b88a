// Counts transfers by type, path and memory kind: two additions per message.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/machine.h"

namespace weft::machine {

class TransferCounts {
 public:
  void add(TransferType type, TransferPath path, memory::Kind kind, std::size_t size_bytes) {
    Count& count = counts_[static_cast<std::size_t>(type)][static_cast<std::size_t>(path)]
                          [static_cast<std::size_t>(kind)];
    ++count.messages;
    count.bytes += size_bytes;
  }
  // A row for each way that was used.
  std::vector<TransportUse> uses() const;

 private:
  struct Count {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };

  std::array<std::array<std::array<Count, memory::kNumKinds>, kNumTransferPaths>, kNumTransferTypes>
      counts_{};
};

}  // namespace weft::machine
