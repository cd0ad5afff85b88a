// One step of load balancing, as the PE sees it that has made the collection: it collects the loads of all elements, decides,
// and counts the PEs that have moved their elements.
//
// It sends nothing. The numbers are claims of peers: each one is checked before use. Threads: the PE's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "weft/balance/snapshot.h"
#include "weft/base/status.h"

#include "balance/strategy.h"
#include "models/chare/balancing/decision.h"
#include "models/chare/balancing/reported_messages.h"

namespace weft::chare {

// An element at the sync point, as its PE reports it. Travels as its bytes.
struct ReportedLoad {
  std::uint64_t index = 0;
  double load_s = 0;
  std::uint64_t can_move = 0;  // 0 or 1
  double device_load_s = 0;
};
static_assert(std::is_trivially_copyable_v<ReportedLoad> && sizeof(ReportedLoad) == 32);

class SyncStep : public Decision {
 public:
  // A step for a collection with `size` elements, at least one.
  SyncStep(std::uint64_t collection, std::uint64_t size, int num_pes);

  // Elements of that PE. kInvalidArgument, which says what is wrong: an element does not exist, was reported before, or its
  // load is no load.
  base::Status add(int pe, std::span<const ReportedLoad> loads);
  // Adds the messages that the elements in `loads` have sent, in the order of `loads` and then of the receivers.
  // kInvalidArgument: they are not in this order, or a number is none. REQUIRES: `loads` were added.
  base::Status add_messages(std::span<const ReportedLoad> loads, std::span<const ReportedMessages> messages);
  // The background load of each PE. REQUIRES: loads of the limits of a snapshot.
  void set_background(std::span<const double> background_s);
  // The loads of elements are numbers that the program has set: they may have another unit than background load, which is
  // therefore 0 in this step.
  void ignore_background() { ignores_background_ = true; }
  // Whether all elements have been reported.
  bool is_complete() const { return num_reported_ == is_reported_.size(); }

  // See Decision. REQUIRES: is_complete().
  base::Result<std::vector<PlanOfPe>> decide(balance::Strategy& strategy);
  // REQUIRES: decided.
  const balance::Snapshot& snapshot() const { return snapshot_; }

 private:
  // In the order of the senders: the decision does not depend on the order of the reports.
  void sort_edges();

  std::vector<bool> is_reported_;
  std::uint64_t num_reported_ = 0;
  bool ignores_background_ = false;
  std::uint64_t sent_bytes_ = 0;  // the sum of all edges
  std::vector<double> device_loads_s_;
  balance::Snapshot snapshot_;
};

}  // namespace weft::chare
