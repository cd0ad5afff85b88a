// Queues of receives and of messages by context, source and tag: a hash table of first-in, first-out lists.
//
// Every operation takes constant time, whatever waits: a queue is found by its whole key, and an entry knows its
// neighbours. A queue that has run empty stays until the table grows, so that a loop of receives allocates nothing.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::mpi {

// Stands for every source, or every tag, in a key. Sources and tags of messages are not negative.
inline constexpr std::int32_t kAny = -1;

struct MatchKey {
  std::uint64_t context = 0;
  std::int32_t source = 0;
  std::int32_t tag = 0;
  friend bool operator==(const MatchKey&, const MatchKey&) = default;
};

// An entry's place in one queue.
struct MatchLink {
  MatchLink* next = nullptr;
  MatchLink* previous = nullptr;
  void* entry = nullptr;
};

class MatchTable {
 public:
  static constexpr std::size_t kNumKinds = 4;

  MatchTable() : slots_(kFewestSlots) {}

  // Which wildcards a key has. 0: none; 1: any source; 2: any tag; 3: both.
  static std::size_t kind_of(const MatchKey& key) {
    return (key.source == kAny ? 1U : 0U) | (key.tag == kAny ? 2U : 0U);
  }

  // The first entry with exactly that key, wildcards included; null if there is none.
  MatchLink* first(const MatchKey& key) const {
    const MatchSlot& slot = slots_[slot_of(key)];
    return slot.used ? slot.first : nullptr;
  }
  void push(const MatchKey& key, MatchLink& link);
  // REQUIRES: push(key, link) was called, and the link was not removed.
  void remove(const MatchKey& key, MatchLink& link);
  // An entry of some queue; null if all are empty. Its cost grows with the table.
  void* any() const;

 private:
  struct MatchSlot {
    MatchKey key;
    MatchLink* first = nullptr;
    MatchLink* last = nullptr;
    bool used = false;
  };
  static constexpr std::size_t kFewestSlots = 64;

  static std::size_t hash_of(const MatchKey& key) {
    std::uint64_t hash = key.context * 0x9e3779b97f4a7c15U;
    hash ^=
        (std::uint64_t{static_cast<std::uint32_t>(key.source)} << 32) | static_cast<std::uint32_t>(key.tag);
    hash *= 0xff51afd7ed558ccdU;
    return static_cast<std::size_t>(hash ^ (hash >> 32));
  }
  // The slot of that key, or the free slot where it belongs. A program mostly uses a key several times in a row.
  std::size_t slot_of(const MatchKey& key) const {
    std::size_t& last = last_[kind_of(key)];
    if (slots_[last].used && slots_[last].key == key) [[likely]]
      return last;
    std::size_t at = hash_of(key) & (slots_.size() - 1);
    while (slots_[at].used && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    last = at;
    return at;
  }
  void rebuild();

  std::vector<MatchSlot> slots_;  // a power of two; at most half are used
  std::size_t num_used_ = 0;
  mutable std::array<std::size_t, kNumKinds> last_{};  // by kind: the slot that was found last
};

// A receive that waits for its message. The key may hold kAny.
struct PostedEntry {
  MatchKey key;
  MatchLink link;
  std::uint64_t number = 0;  // the order of posting
};

// Receives that wait. A message goes to the earliest posted one that it matches.
//
// A receive that waits alone, as in a blocking call, is kept beside the table.
class PostedQueue {
 public:
  void post(PostedEntry& entry) {
    entry.number = next_number_++;
    if (size() == 0) [[likely]] {
      lone_ = &entry;
    } else {
      post_further(entry);
    }
  }
  // The receive that a message with that key matches; null if there is none.
  PostedEntry* find(const MatchKey& key) const {
    if (lone_ == nullptr) return find_in_table(key);
    return matches(lone_->key, key) ? lone_ : nullptr;
  }
  // As find(), and the receive is no longer posted.
  PostedEntry* take(const MatchKey& key) {
    PostedEntry* const found = find(key);
    if (found != nullptr) remove(*found);
    return found;
  }
  // REQUIRES: the entry is posted.
  void remove(PostedEntry& entry) {
    if (lone_ == &entry) [[likely]] {
      lone_ = nullptr;
    } else {
      remove_from_table(entry);
    }
  }
  // Some receive; null if there is none. Its cost grows with the table.
  PostedEntry* any() const { return lone_ != nullptr ? lone_ : static_cast<PostedEntry*>(table_.any()); }
  std::size_t size() const {
    return (lone_ != nullptr ? 1U : 0U) + count_[0] + count_[1] + count_[2] + count_[3];
  }

 private:
  static bool matches(const MatchKey& posted, const MatchKey& key) {
    return posted.context == key.context && (posted.source == key.source || posted.source == kAny) &&
           (posted.tag == key.tag || posted.tag == kAny);
  }
  void post_further(PostedEntry& entry);
  PostedEntry* find_in_table(const MatchKey& key) const;
  void remove_from_table(PostedEntry& entry);
  void insert(PostedEntry& entry);

  PostedEntry* lone_ = nullptr;
  MatchTable table_;
  std::array<std::size_t, MatchTable::kNumKinds> count_{};  // in the table
  std::uint64_t next_number_ = 0;
};

// A message that no receive has taken. Its key holds no kAny.
struct ArrivedEntry {
  MatchKey key;
  std::array<MatchLink, MatchTable::kNumKinds> links;  // for the key and its three forms with kAny
};

// Messages without a receive, in the order of their arrival.
class UnexpectedQueue {
 public:
  void add(ArrivedEntry& entry);
  // The first message that a receive with that key matches; null if there is none.
  ArrivedEntry* find(const MatchKey& key) const {
    if (size_ == 0) return nullptr;
    const MatchLink* const link = table_.first(key);
    return link == nullptr ? nullptr : static_cast<ArrivedEntry*>(link->entry);
  }
  // REQUIRES: the entry is in the queue.
  void remove(ArrivedEntry& entry);
  // Some entry; null if there is none. Its cost grows with the table.
  ArrivedEntry* any() const { return static_cast<ArrivedEntry*>(table_.any()); }
  std::size_t size() const { return size_; }

 private:
  MatchTable table_;
  std::size_t size_ = 0;
};

}  // namespace weft::mpi
