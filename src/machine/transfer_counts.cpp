#include "machine/transfer_counts.h"

#include <cassert>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace weft::machine {

namespace {

struct Pending {
  TransferCounts* counts;
  TransferEvent event;
  base::Completion::Function function;  // the caller's
};

// The transfers in flight that are observed, by the completion of their caller. A completion's function is given
// nothing but the completion, and the machine's handle in it is not to change: cancel() needs it. So the map is the
// process's and not the machine's. A transfer may end in another thread than it began, if a program calls MPI from several.
std::mutex observed_mutex;
std::unordered_map<base::Completion*, Pending> observed;

}  // namespace

void TransferCounts::observe(TransferType type, TransferPath path, memory::Kind kind, std::size_t size_bytes,
                             const base::Status& started, base::Completion* completion) {
  const TransferEvent event{++last_number_, type, path, kind, size_bytes};
  observer_->transfer_began(event);
  if (!started.is_pending() || completion == nullptr) {
    return observer_->transfer_ended(event, !started.failed());
  }
  {
    const std::lock_guard lock(observed_mutex);
    [[maybe_unused]] const bool is_new =
        observed.try_emplace(completion, Pending{this, event, completion->function}).second;
    assert(is_new);
  }
  completion->function = &TransferCounts::ended;
}

void TransferCounts::ended(base::Completion* completion, base::Status status, std::size_t size_bytes) {
  const Pending pending = [&] {
    const std::lock_guard lock(observed_mutex);
    return observed.extract(completion).mapped();
  }();
  completion->function = pending.function;
  TransferObserver* const observer = pending.counts->observer_;
  if (observer != nullptr) observer->transfer_ended(pending.event, status.ok());
  pending.function(completion, std::move(status), size_bytes);
}

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
