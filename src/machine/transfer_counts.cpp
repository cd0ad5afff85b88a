#include "machine/transfer_counts.h"

namespace weft::machine {

std::vector<TransportUse> TransferCounts::uses() const {
  std::vector<TransportUse> result;
  for (std::size_t type = 0; type < counts_.size(); ++type) {
    for (std::size_t path = 0; path < counts_[type].size(); ++path) {
      for (std::size_t kind = 0; kind < counts_[type][path].size(); ++kind) {
        const Count& count = counts_[type][path][kind];
        if (count.messages == 0) continue;
        result.push_back({static_cast<TransferType>(type), static_cast<TransferPath>(path),
                          static_cast<memory::Kind>(kind), count.messages, count.bytes});
      }
    }
  }
  return result;
}

}  // namespace weft::machine
