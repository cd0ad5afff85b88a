// Inbox: what has come for one member of a group and what waits for it. InboxTable: those of a PE.
//
// A message of a call may come before the call begins here, or before there is a group: then it is kept. A peer is at most one message in
// each round of a call ahead, and members wait for one another in one of some 64 calls (waits_first() in group.h), which bounds what is kept.
//
// Threads: the PE's. What is in a header is a claim of a peer: the one who takes a message checks it (Run, Engine).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/small_bytes.h"

namespace weft::collective {

class Group;

// The wire format in front of the blocks.
struct StepHeader {
  std::uint64_t group = 0;
  std::uint64_t number = 0;  // of the call
  std::int32_t from = 0;     // places
  std::int32_t to = 0;
  std::uint32_t round = 0;
  std::uint32_t flags = 0;
  // The sender has failed: there are no blocks.
  static constexpr std::uint32_t kFailed = 1;
  // A BoardReference, and no blocks.
  static constexpr std::uint32_t kPosted = 2;
  // An answer to the sender of the same header and reference: it must send the blocks.
  static constexpr std::uint32_t kRefused = 4;
  // The sender waits for this member, and asks whether it takes part in that call: see NumberCheck. Without
  // blocks.
  static constexpr std::uint32_t kQuestion = 8;
  // The other bits tell where the blocks begin, see place_mark(): blocks of the right size may be others if counts are wrong.
  static constexpr std::uint32_t kMarks = 0xffff0000U;
};
static_assert(sizeof(StepHeader) == 32);

// A call that takes part in a collective.
class Awaiting {
 public:
  explicit Awaiting(std::uint64_t number) : number_(number) {}
  std::uint64_t number() const { return number_; }
  enum class Taken : std::uint8_t { kNot, kYes, kAndOver };
  // Takes the message if it is the next one, and goes on. The bytes are valid during the call.
  virtual Taken take(const StepHeader& header, std::span<const std::byte> blocks) = 0;
  // A message has been kept: if the call awaits it, it goes on in a later turn.
  virtual void note_kept(const StepHeader& header) = 0;
  // Sends kQuestion to the member that the call waits for, if there is one.
  virtual void ask() {}

 protected:
  ~Awaiting() = default;

 private:
  std::uint64_t number_;
};

// The owner of a group whose calls have a counter in the lower half of their numbers, and in the upper half
// what all members must agree on.
class NumberCheck {
 public:
  // Reports that a member makes that call if this one has made another one with its counter. For questions,
  // and for messages with a number that no call under way has.
  virtual void check(int from, std::uint64_t number) = 0;

 protected:
  ~NumberCheck() = default;
};

class Inbox {
 public:
  struct Kept {
    StepHeader header;
    int source_pe = 0;  // not checked if there was no group yet
    base::SmallBytes blocks;
  };

  void begin(Awaiting& call) {
    calls_.push_back(&call);
    if (number_check == nullptr) return;
    for (const Kept& kept : kept_)
      if (kept.header.number != call.number() && have_same_counter(kept.header.number, call.number()))
        number_check->check(kept.header.from, kept.header.number);
  }
  void end(Awaiting& call) { std::erase(calls_, &call); }
  // Gives the message to its call, or keeps it. Returns whether the call is over.
  bool arrive(int source_pe, const StepHeader& header, std::span<const std::byte> blocks) {
    Awaiting* const call = call_of(header);
    const Awaiting::Taken taken = call == nullptr ? Awaiting::Taken::kNot : call->take(header, blocks);
    if (taken == Awaiting::Taken::kNot) keep(source_pe, header, blocks);
    return taken == Awaiting::Taken::kAndOver;
  }
  void keep(int source_pe, const StepHeader& header, std::span<const std::byte> blocks) {
    kept_.push_back({header, source_pe, blocks});
    if (Awaiting* const call = call_of(header)) {
      call->note_kept(header);
    } else if (number_check != nullptr) {
      number_check->check(header.from, header.number);
    }
  }
  // The kept message of that call, sender and round, which is kept no more; nothing if there is none.
  std::optional<Kept> take_kept(std::uint64_t number, int from, std::uint32_t round) {
    const auto found = std::ranges::find_if(kept_, [&](const Kept& one) {
      return one.header.number == number && one.header.from == from && one.header.round == round;
    });
    if (found == kept_.end()) return std::nullopt;
    std::optional<Kept> taken(std::move(*found));
    if (found + 1 != kept_.end()) *found = std::move(kept_.back());
    kept_.pop_back();
    return taken;
  }
  std::size_t num_kept() const { return kept_.size(); }
  // No call awaits anything any more, and nothing is kept. Returns what was.
  std::vector<Kept> drop_all() {
    drops_all_ = true;
    return std::exchange(kept_, {});
  }
  bool drops_all() const { return drops_all_; }
  static bool have_same_counter(std::uint64_t one, std::uint64_t other) {
    return static_cast<std::uint32_t>(one) == static_cast<std::uint32_t>(other);
  }
  // Null if no call is under way.
  Awaiting* oldest() const { return calls_.empty() ? nullptr : calls_.front(); }
  // The call under way with that counter; null if there is none.
  const Awaiting* call_with(std::uint32_t counter) const {
    const auto found = std::ranges::find_if(
        calls_, [counter](const Awaiting* call) { return have_same_counter(call->number(), counter); });
    return found == calls_.end() ? nullptr : *found;
  }

  // The group of the member, while it has one.
  Group* group = nullptr;
  // Null: all numbers may be.
  NumberCheck* number_check = nullptr;

 private:
  Awaiting* call_of(const StepHeader& header) const {
    for (Awaiting* const call : calls_)
      if (call->number() == header.number) return call;
    return nullptr;
  }

  std::vector<Awaiting*> calls_;
  std::vector<Kept> kept_;
  bool drops_all_ = false;
};

class InboxTable {
 public:
  // Makes it if there is none. It stays where it is.
  Inbox& inbox(std::uint64_t group, int place) {
    const Key key{group, place};
    if (key == last_key_ && last_ != nullptr) [[likely]]
      return *last_;
    last_key_ = key;
    last_ = &inboxes_[key];
    return *last_;
  }
  // The member has no group any more. What is kept for later calls stays, and that it drops all.
  void forget(std::uint64_t group, int place) {
    const auto found = inboxes_.find({group, place});
    if (found == inboxes_.end() || found->second.num_kept() > 0 || found->second.drops_all()) return;
    last_ = nullptr;
    inboxes_.erase(found);
  }
  std::size_t size() const { return inboxes_.size(); }

 private:
  struct Key {
    std::uint64_t group = 0;
    int place = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::uint64_t>()(key.group * 0x9e3779b97f4a7c15U +
                                        static_cast<std::uint64_t>(key.place));
    }
  };

  std::unordered_map<Key, Inbox, Hash> inboxes_;
  Key last_key_;
  Inbox* last_ = nullptr;
};

}  // namespace weft::collective
