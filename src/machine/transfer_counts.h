// Counts transfers by type, path and memory kind, and tells an observer of each: two additions per message, and a
// branch when there is no observer.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "machine/transfer_observer.h"

namespace weft::machine {

class TransferCounts {
 public:
  void add(TransferType type, TransferPath path, memory::Kind kind, std::size_t size_bytes) {
    Count& count = counts_[static_cast<std::size_t>(type)][static_cast<std::size_t>(path)]
                          [static_cast<std::size_t>(kind)];
    ++count.messages;
    count.bytes += size_bytes;
  }
  // Null for none. `observer` must outlive its use: set another, or null, before it goes.
  void set_observer(TransferObserver* observer) {
    observer_ = observer;
    observes_active_messages_ = observer != nullptr && observer->observes_active_messages();
  }
  bool is_observed() const { return observer_ != nullptr; }
  bool observes_active_messages() const { return observes_active_messages_; }
  // After the start of a transfer: `started` is what the start function returned. If the transfer is pending, the
  // observer learns of its end when `completion` is called; the caller's function is called after that.
  // REQUIRES: is_observed().
  void observe(TransferType type, TransferPath path, memory::Kind kind, std::size_t size_bytes,
               const base::Status& started, base::Completion* completion);

  // A row for each way that was used.
  std::vector<TransportUse> uses() const;

 private:
  static void ended(base::Completion* completion, base::Status status, std::size_t size_bytes);

  struct Count {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };

  std::array<std::array<std::array<Count, memory::kNumKinds>, kNumTransferPaths>, kNumTransferTypes>
      counts_{};
  TransferObserver* observer_ = nullptr;
  bool observes_active_messages_ = false;
  std::uint64_t last_number_ = 0;
};

}  // namespace weft::machine
