// Agreements: those of all communicators of this process.
//
// A member begins an agreement of a communicator when the one before is decided here, also if its program has called several without
// waiting. So all living members that have begun one have left those before, which are forgotten.
//
// Threads: the PE's. All that a peer sends is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/mpi/survival/agreement.h"

namespace weft::mpi {

class Agreements {
 public:
  explicit Agreements(AgreementWay& way) : way_(way) {}
  Agreements(const Agreements&) = delete;
  Agreements& operator=(const Agreements&) = delete;

  // The program has called, in the same order at all members. `decided` may call none of these functions. See Agreement::enter().
  void enter(AgreementName name, Members members, int place, AgreementGift gift, Agreement::Decided decided);
  // `message`: as it was sent. Throws Error if it cannot be right.
  void arrive(int from, std::span<const std::byte> message);
  // A process of the job is lost.
  void note_loss();

 private:
  struct Call {
    AgreementName name;
    Members members;
    int place;
    AgreementGift gift;
    Agreement::Decided decided;
  };

  // Null if all living members have left it.
  Agreement* find(AgreementName name);
  void begin(Call& call);
  // Outside of all agreements, because the end of a call destroys those before.
  void begin_next_calls();
  void end_call(AgreementName name);

  AgreementWay& way_;
  // The last one of each communicator, and those that are not decided.
  std::map<AgreementName, std::unique_ptr<Agreement>> agreements_;
  // By context: the number of the first one that is kept.
  std::unordered_map<std::uint64_t, std::uint32_t> first_kept_;
  // By context. The first call has begun, or is the next one to begin.
  std::map<std::uint64_t, std::deque<Call>> calls_;
  std::vector<std::uint64_t> next_calls_;  // contexts
};

}  // namespace weft::mpi
