// One round of periodic load balancing, as the PE sees it that has made the collection: it collects what all PEs know of their
// elements, and decides.
//
// Elements run on and move meanwhile. One that is under way is in no report, and stays for this round; one that has moved between
// two reports is in both: its times are added, and it is where it has come to last.
//
// It sends nothing. The numbers are claims of peers: each one is checked before use. Threads: the PE's.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "weft/balance/snapshot.h"
#include "weft/base/status.h"

#include "balance/strategy.h"
#include "models/chare/balancing/decision.h"
#include "models/chare/balancing/reported_messages.h"

namespace weft::chare {

// An element, as its PE reports it. Travels as its bytes.
struct PeriodicLoad {
  std::uint64_t index = 0;
  double load_s = 0;
  std::uint32_t can_move = 0;  // 0 or 1
  std::uint32_t num_moves = 0;
  double device_load_s = 0;
};
static_assert(std::is_trivially_copyable_v<PeriodicLoad> && sizeof(PeriodicLoad) == 32);

class Round : public Decision {
 public:
  // A round for a collection whose indices are less than `size`.
  Round(std::uint64_t collection, std::uint64_t size, int num_pes);

  // The report of a PE. `has_set_loads`: whether the program has set loads. They may have another unit than background load,
  // which is therefore 0 in this round. kInvalidArgument, which says what is wrong: the PE has reported before, or a number is
  // none.
  base::Status add(int pe, double background_s, std::uint64_t has_set_loads,
                   std::span<const PeriodicLoad> loads, std::span<const ReportedMessages> messages);
  // Whether all PEs have reported.
  bool is_complete() const { return num_reports_ == is_reported_.size(); }

  // See Decision. REQUIRES: is_complete().
  base::Result<std::vector<PlanOfPe>> decide(balance::Strategy& strategy);
  // REQUIRES: decided.
  const balance::Snapshot& snapshot() const { return snapshot_; }

 private:
  struct Reported {
    balance::ObjectLoad object;
    std::uint32_t num_moves = 0;
    double device_load_s = 0;
  };
  struct Sent {
    std::uint64_t from = 0;  // an index
    SentTo to;
  };
  // From what has been sent to elements that were reported too.
  void make_edges();

  std::uint64_t collection_ = 0;
  std::uint64_t size_;
  std::vector<bool> is_reported_;
  std::size_t num_reports_ = 0;
  bool ignores_background_ = false;
  std::vector<Reported> reported_;
  std::vector<Sent> sent_;
  std::uint64_t sent_bytes_ = 0;
  balance::Snapshot snapshot_;
};

}  // namespace weft::chare
