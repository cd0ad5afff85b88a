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
class Run;

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
  // The call fails at once, see Group::end_all(). Its owner may free it.
  virtual void end_with_group() {}
  // Null for a call that is not of the engine.
  virtual const Run* as_run() const { return nullptr; }

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

struct KeptMessage {
  StepHeader header;
  int source_pe = 0;  // not checked if there was no group yet
  base::SmallBytes blocks;
};

// By call: members that run ahead may have sent hundreds.
class KeptMessages {
 public:
  std::size_t size() const { return size_; }
  void add(int source_pe, const StepHeader& header, std::span<const std::byte> blocks) {
    if (size_ >= firsts_.size()) make_room();
    const std::uint32_t slot = free_;
    Slot& added = slots_[slot];
    added.message.blocks.assign(blocks);
    added.message.header = header;
    added.message.source_pe = source_pe;
    free_ = added.next;
    std::uint32_t& first = first_of(header.number);
    added.next = first;
    first = slot;
    ++size_;
  }
  std::optional<KeptMessage> take(std::uint64_t number, int from, std::uint32_t round) {
    if (size_ == 0) return std::nullopt;
    for (std::uint32_t* link = &first_of(number); *link != kNone; link = &slots_[*link].next) {
      const StepHeader& header = slots_[*link].message.header;
      if (header.number != number || header.from != from || header.round != round) continue;
      const std::uint32_t slot = *link;
      *link = slots_[slot].next;
      slots_[slot].next = free_;
      free_ = slot;
      --size_;
      return std::move(slots_[slot].message);
    }
    return std::nullopt;
  }
  // Calls use(message) for those of a number with the same lower half.
  template <class Use>
  void for_counter(std::uint64_t number, const Use& use) const {
    if (size_ == 0) return;
    for (std::uint32_t slot = first_of(number); slot != kNone; slot = slots_[slot].next) {
      const KeptMessage& message = slots_[slot].message;
      if (static_cast<std::uint32_t>(message.header.number) == static_cast<std::uint32_t>(number))
        use(message);
    }
  }
  // Calls use(message) for each.
  template <class Use>
  void for_all(const Use& use) const {
    for (std::uint32_t slot : firsts_)
      for (; slot != kNone; slot = slots_[slot].next) use(slots_[slot].message);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Slot {
    KeptMessage message;
    std::uint32_t next = kNone;  // with the same last bits of the number, or free
  };

  // Calls that are under way have consecutive counters, or nearly so.
  const std::uint32_t& first_of(std::uint64_t number) const { return firsts_[number & (firsts_.size() - 1)]; }
  std::uint32_t& first_of(std::uint64_t number) { return firsts_[number & (firsts_.size() - 1)]; }
  // REQUIRES: no slot is free.
  void make_room() {
    const std::size_t count = std::max<std::size_t>(4, 2 * slots_.size());
    slots_.resize(count);
    firsts_.assign(count, kNone);
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      std::uint32_t& first = slot < size_ ? first_of(slots_[slot].message.header.number) : free_;
      slots_[slot].next = first;
      first = slot;
    }
  }

  std::size_t size_ = 0;
  std::uint32_t free_ = kNone;
  std::vector<std::uint32_t> firsts_;  // slots, by the last bits of the number; a power of two
  std::vector<Slot> slots_;            // as many
};

class Inbox {
 public:
  void begin(Awaiting& call) {
    calls_.push_back(&call);
    if (number_check == nullptr) return;
    kept_.for_counter(call.number(), [&](const KeptMessage& kept) {
      if (kept.header.number != call.number()) number_check->check(kept.header.from, kept.header.number);
    });
  }
  void end(Awaiting& call) {
    if (calls_.back() == &call) [[likely]]
      return calls_.pop_back();
    std::erase(calls_, &call);
  }
  // Gives the message to its call, or keeps it. Returns whether the call is over.
  bool arrive(int source_pe, const StepHeader& header, std::span<const std::byte> blocks) {
    Awaiting* const call = call_of(header);
    const Awaiting::Taken taken = call == nullptr ? Awaiting::Taken::kNot : call->take(header, blocks);
    if (taken == Awaiting::Taken::kNot) keep_for(call, source_pe, header, blocks);
    return taken == Awaiting::Taken::kAndOver;
  }
  void keep(int source_pe, const StepHeader& header, std::span<const std::byte> blocks) {
    keep_for(call_of(header), source_pe, header, blocks);
  }
  // The kept message of that call, sender and round, which is kept no more; nothing if there is none.
  std::optional<KeptMessage> take_kept(std::uint64_t number, int from, std::uint32_t round) {
    return kept_.take(number, from, round);
  }
  std::size_t num_kept() const { return kept_.size(); }
  // No call awaits anything any more, and nothing is kept. Returns what was.
  KeptMessages drop_all() {
    drops_all_ = true;
    return std::exchange(kept_, {});
  }
  bool drops_all() const { return drops_all_; }
  static bool have_same_counter(std::uint64_t one, std::uint64_t other) {
    return static_cast<std::uint32_t>(one) == static_cast<std::uint32_t>(other);
  }
  std::span<Awaiting* const> calls() const { return calls_; }
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
  // `call`: call_of() the message.
  void keep_for(Awaiting* call, int source_pe, const StepHeader& header, std::span<const std::byte> blocks) {
    kept_.add(source_pe, header, blocks);
    if (call != nullptr) {
      call->note_kept(header);
    } else if (number_check != nullptr) {
      number_check->check(header.from, header.number);
    }
  }

  std::vector<Awaiting*> calls_;
  KeptMessages kept_;
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
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [key, inbox] : inboxes_) visit(inbox);
  }

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
