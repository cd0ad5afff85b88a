// Agreement: one uniform agreement among the living members of a communicator, for MPIX_Comm_agree and MPIX_Comm_shrink.
//
// The living member with the lowest place coordinates. Each member sends it what it gives; the coordinator makes the result of what all living
// members have given, proposes it, and decides when all living ones have accepted the proposal. If a coordinator is lost, the next one gets
// what each member gives again, with the last proposal that the member has accepted or the decision that it knows, and proposes that.
// So if one member has decided, all later coordinators find that result at each living member. docs/decisions/mpi-losses.md has the proof.
//
// A member that has decided answers for the agreement until all living members have left it. The coordinator counts them and tells them.
//
// No messages and no communicators in it: see AgreementWay. Threads: the PE's. All that a peer sends is checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/mpi/objects/members.h"

namespace weft::mpi {

// A set of members, by place.
class PlaceSet {
 public:
  explicit PlaceSet(std::size_t size) : words_((size + 63) / 64) {}
  bool has(std::size_t place) const { return (words_[place / 64] >> (place % 64) & 1) != 0; }
  void add(std::size_t place) { words_[place / 64] |= std::uint64_t{1} << (place % 64); }
  void unite(const PlaceSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void intersect(const PlaceSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }
  bool is_within(const PlaceSet& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if ((words_[i] & ~other.words_[i]) != 0) return false;
    return true;
  }
  std::vector<std::uint64_t>& words() { return words_; }
  const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  std::vector<std::uint64_t> words_;
};

// Which one: the number of the communicator, and how many there have been on it.
struct AgreementName {
  std::uint64_t context = 0;
  std::uint32_t number = 0;
  auto operator<=>(const AgreementName&) const = default;
};

// The same at all members that get one.
struct AgreementResult {
  std::int32_t flag = 0;            // the bitwise AND
  bool has_unacknowledged = false;  // `lost` has one that a member has not acknowledged
  // Numbers for a communicator of the living. Of an intercommunicator: its own, and those of the two groups.
  std::array<std::uint64_t, 3> contexts{};
  PlaceSet lost{0};
};

class AgreementWay {
 public:
  virtual void send(int rank, std::vector<std::byte> message) = 0;
  virtual bool is_lost(int rank) const = 0;
  virtual std::uint64_t new_context() = 0;

 protected:
  ~AgreementWay() = default;
};

// What a member gives.
struct AgreementGift {
  std::int32_t flag = -1;
  PlaceSet acknowledged{0};
  PlaceSet lost{0};
};

class Agreement {
 public:
  using Decided = std::function<void(const AgreementResult& result)>;

  Agreement(AgreementName name, AgreementWay& way) : name_(name), way_(way) {}

  // The program has called. `members`: ranks in MPI_COMM_WORLD in rising order; `place`: of this process. `decided` is called once, perhaps at once.
  void enter(Members members, int place, AgreementGift gift, Decided decided);
  // `message`: behind the name. Throws Error if it cannot be right.
  void arrive(int from, std::span<const std::byte> message);
  // A process of the job is lost.
  void note_loss() { advance(); }
  // The program has freed the communicator. REQUIRES: is_decided().
  void leave();
  bool is_decided() const { return decision_.has_value(); }
  bool has_entered() const { return !members_.empty(); }
  // All living members have left, so no message about it comes any more.
  bool is_over() const { return is_over_; }

 private:
  enum class Type : std::uint32_t { kGift, kProposal, kAcceptance, kDecision, kLeft, kOver };
  struct Proposal {
    int coordinator = -1;  // place
    AgreementResult result;
  };
  struct Given {
    AgreementGift gift;
    std::optional<Proposal> accepted;
  };

  void advance();
  void coordinate();
  void end_if_all_left();
  bool has_gifts_of_living() const;
  AgreementResult result_of_gifts() const;
  // The proposal that the last coordinator has made, of those that living members have accepted.
  const Proposal* last_accepted() const;
  void decide(const AgreementResult& result);
  int coordinator() const;

  void take(int place, std::span<const std::byte> message);
  void send_gift(int place);
  void send(int place, Type type, const AgreementResult* result);
  void send_to_living(Type type, const AgreementResult* result);
  int place_of(int rank) const;
  bool is_living(int place) const { return !way_.is_lost(members_[static_cast<std::size_t>(place)]); }

  AgreementName name_;
  AgreementWay& way_;
  Members members_;  // empty until the program has called
  int place_ = 0;
  AgreementGift gift_;
  Decided decided_;
  // What has come before the program has called.
  std::vector<std::pair<int, std::vector<std::byte>>> early_;

  std::optional<Proposal> accepted_;  // the last one
  std::optional<AgreementResult> decision_;
  int told_ = -1;  // the last coordinator that this member has told what it gives, or that it has left
  bool has_left_ = false;
  bool is_over_ = false;
  // Of a coordinator.
  std::map<int, Given> given_;  // by place
  std::optional<AgreementResult> proposal_;
  std::vector<bool> has_accepted_;  // by place
  std::vector<bool> have_left_;     // by place
};

}  // namespace weft::mpi
