// Agreements: those of all communicators of this process.
//
// A member begins an agreement of a communicator when the one before is decided here, also if its program has called several without
// waiting. So all living members that have begun one have left those before, which are forgotten. The last one is forgotten when all living
// members have freed the communicator.
//
// Threads: the PE's. All that a peer sends is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
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
  // The program has freed the communicator. `last`: its last call, which may not be decided yet.
  void leave(AgreementName last);
  // How many are kept.
  std::size_t size() const { return agreements_.size(); }

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
  // Outside of all agreements, because they destroy agreements.
  void do_next_steps();
  void end_call(AgreementName name);
  void forget_if_over(AgreementName name);

  AgreementWay& way_;
  // The last one of each communicator, and those that are not decided.
  std::map<AgreementName, std::unique_ptr<Agreement>> agreements_;
  // By context: the number of the first one that is kept.
  std::unordered_map<std::uint64_t, std::uint32_t> first_kept_;
  // By context. The first call has begun, or is the next one to begin.
  std::map<std::uint64_t, std::deque<Call>> calls_;
  std::set<std::uint64_t> freed_;  // contexts with calls
  // Are to be begun, and to be left.
  std::vector<std::uint64_t> next_calls_;  // contexts
  std::vector<AgreementName> next_left_;
};

}  // namespace weft::mpi
