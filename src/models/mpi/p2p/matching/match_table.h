// Queues of receives and of messages by context, source and tag: a hash table of first-in, first-out lists.
//
// Every operation takes constant time, whatever waits: a queue is found by its whole key, and an entry knows its
// neighbours. A queue that has run empty stays until the table grows, so that a loop of receives allocates nothing.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <bit>
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

  // A queue, and the key of its entries.
  struct MatchSlot {
    MatchKey key;
    MatchLink* first = nullptr;
    MatchLink* last = nullptr;
    bool used = false;
    std::uint8_t kind = 0;  // kind_of(key)
  };

  MatchTable() : slots_(kFewestSlots) {}

  // Which wildcards a key has. 0: none; 1: any source; 2: any tag; 3: both.
  static std::size_t kind_of(const MatchKey& key) {
    return (key.source == kAny ? 1U : 0U) | (key.tag == kAny ? 2U : 0U);
  }
  // The key with the wildcards of that kind.
  static MatchKey with_wildcards(MatchKey key, std::size_t kind) {
    if ((kind & 1U) != 0) key.source = kAny;
    if ((kind & 2U) != 0) key.tag = kAny;
    return key;
  }

  // Calls visit(kind) for each bit of `kinds`.
  template <class Visit>
  static void for_each_kind(std::uint32_t kinds, const Visit& visit) {
    for (; kinds != 0; kinds &= kinds - 1) visit(static_cast<std::size_t>(std::countr_zero(kinds)));
  }

  // The queue of entries with exactly that key, of that kind, until the next push(). One that is free has no first entry.
  MatchSlot& queue(const MatchKey& key, std::size_t kind) { return slots_[slot_of(key, kind)]; }
  // As queue(), made if there is none.
  MatchSlot& queue_to_fill(const MatchKey& key, std::size_t kind) {
    MatchSlot& found = queue(key, kind);
    return found.used ? found : make_queue(key, kind);
  }
  static void append(MatchSlot& queue, MatchLink& link) {
    link.next = nullptr;
    link.previous = queue.last;
    (queue.last == nullptr ? queue.first : queue.last->next) = &link;
    queue.last = &link;
  }
  static void unlink(MatchSlot& queue, MatchLink& link) {
    (link.previous == nullptr ? queue.first : link.previous->next) = link.next;
    (link.next == nullptr ? queue.last : link.next->previous) = link.previous;
  }
  void push(const MatchKey& key, std::size_t kind, MatchLink& link) {
    append(queue_to_fill(key, kind), link);
  }
  // REQUIRES: push(key, kind, link) was called, and the link was not removed.
  void remove(const MatchKey& key, std::size_t kind, MatchLink& link) {
    unlink(slots_[slot_of(key, kind)], link);
  }
  // Calls visit(entry) for the entries of all queues, in no order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const MatchSlot& slot : slots_) {
      for (const MatchLink* link = slot.first; link != nullptr; link = link->next) visit(link->entry);
    }
  }
  // An entry of some queue; null if all are empty. Its cost grows with the table.
  void* any() const;

 private:
  static constexpr std::size_t kFewestSlots = 64;

  static std::size_t hash_of(const MatchKey& key) {
    std::uint64_t hash = key.context * 0x9e3779b97f4a7c15U;
    hash ^=
        (std::uint64_t{static_cast<std::uint32_t>(key.source)} << 32) | static_cast<std::uint32_t>(key.tag);
    hash *= 0xff51afd7ed558ccdU;
    return static_cast<std::size_t>(hash ^ (hash >> 32));
  }
  // The slot of that key, or the free slot where it belongs. A program mostly uses a key several times in a row.
  std::size_t slot_of(const MatchKey& key, std::size_t kind) {
    std::size_t& last = last_[kind];
    if (slots_[last].used && slots_[last].key == key) [[likely]]
      return last;
    std::size_t at = hash_of(key) & (slots_.size() - 1);
    while (slots_[at].used && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    last = at;
    return at;
  }
  // REQUIRES: there is no queue of that key.
  MatchSlot& make_queue(const MatchKey& key, std::size_t kind);
  void rebuild();

  std::vector<MatchSlot> slots_;  // a power of two; at most half are used
  std::size_t num_used_ = 0;
  std::array<std::size_t, kNumKinds> last_{};  // by kind: the slot that was found last
};

// A receive that waits for its message. The key may hold kAny.
struct PostedEntry {
  MatchKey key;
  MatchLink link;
  std::uint64_t number = 0;  // the order of posting
};

// Receives that wait. A message goes to the earliest posted one that it matches.
//
// Receives of one key, as of a blocking call or of a window of messages, are in one queue beside the table until another key comes.
class PostedQueue {
 public:
  void post(PostedEntry& entry) {
    entry.number = next_number_++;
    entry.link.entry = &entry;
    if (size_ == 0) {
      lone_.key = entry.key;
      MatchTable::append(lone_, entry.link);
    } else if (lone_.first != nullptr && lone_.key == entry.key) {
      MatchTable::append(lone_, entry.link);
    } else {
      if (lone_.first != nullptr) move_lone_to_table();
      const std::size_t kind = MatchTable::kind_of(entry.key);
      table_.push(entry.key, kind, entry.link);
      count(kind, 1);
    }
    ++size_;
  }
  // The receive that a message with that key matches; null if there is none.
  PostedEntry* find(const MatchKey& key) {
    if (lone_.first != nullptr) return matches(lone_.key, key) ? first_of(lone_) : nullptr;
    const MatchTable::MatchSlot* const queue = earliest(key);
    return queue == nullptr ? nullptr : first_of(*queue);
  }
  // As find(), and the receive is no longer posted.
  PostedEntry* take(const MatchKey& key) {
    if (lone_.first != nullptr) [[likely]] {
      if (!matches(lone_.key, key)) return nullptr;
      return take_first(lone_);
    }
    MatchTable::MatchSlot* const queue = earliest(key);
    if (queue == nullptr) return nullptr;
    count(queue->kind, -1);
    return take_first(*queue);
  }
  // REQUIRES: the entry is posted.
  void remove(PostedEntry& entry) {
    if (lone_.first != nullptr) {
      MatchTable::unlink(lone_, entry.link);
    } else {
      const std::size_t kind = MatchTable::kind_of(entry.key);
      table_.remove(entry.key, kind, entry.link);
      count(kind, -1);
    }
    --size_;
  }
  // Some receive; null if there is none. Its cost grows with the table.
  PostedEntry* any() const {
    return lone_.first != nullptr ? first_of(lone_) : static_cast<PostedEntry*>(table_.any());
  }
  std::size_t size() const { return size_; }
  // Calls visit(entry) for each, in no order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const MatchLink* link = lone_.first; link != nullptr; link = link->next)
      visit(*static_cast<const PostedEntry*>(link->entry));
    table_.for_each([&](const void* entry) { visit(*static_cast<const PostedEntry*>(entry)); });
  }

 private:
  static bool matches(const MatchKey& posted, const MatchKey& key) {
    return posted.context == key.context && (posted.source == key.source || posted.source == kAny) &&
           (posted.tag == key.tag || posted.tag == kAny);
  }
  static PostedEntry* first_of(const MatchTable::MatchSlot& queue) {
    return static_cast<PostedEntry*>(queue.first->entry);
  }
  PostedEntry* take_first(MatchTable::MatchSlot& queue) {
    PostedEntry* const taken = first_of(queue);
    MatchTable::unlink(queue, taken->link);
    --size_;
    return taken;
  }
  // So many more entries of that kind are in the table.
  void count(std::size_t kind, std::ptrdiff_t change) {
    count_[kind] += static_cast<std::size_t>(change);
    const std::uint32_t bit = 1U << kind;
    kinds_ = count_[kind] == 0 ? kinds_ & ~bit : kinds_ | bit;
  }
  void move_lone_to_table() {
    const std::size_t kind = MatchTable::kind_of(lone_.key);
    MatchTable::MatchSlot& queue = table_.queue_to_fill(lone_.key, kind);
    queue.first = std::exchange(lone_.first, nullptr);
    queue.last = std::exchange(lone_.last, nullptr);
    count(kind, static_cast<std::ptrdiff_t>(size_));
  }
  // The queue in the table that the receive is first in; null if there is none.
  MatchTable::MatchSlot* earliest(const MatchKey& key) {
    MatchTable::MatchSlot* found = nullptr;
    MatchTable::for_each_kind(kinds_, [&](std::size_t kind) {
      MatchTable::MatchSlot& queue = table_.queue(MatchTable::with_wildcards(key, kind), kind);
      if (queue.first == nullptr) return;
      if (found == nullptr || first_of(queue)->number < first_of(*found)->number) found = &queue;
    });
    return found;
  }

  MatchTable::MatchSlot lone_;  // if it has entries, the table has none
  MatchTable table_;
  std::array<std::size_t, MatchTable::kNumKinds> count_{};  // in the table
  std::uint32_t kinds_ = 0;                                 // a bit for each kind that is in the table
  std::size_t size_ = 0;
  std::uint64_t next_number_ = 0;
};

// A message that no receive has taken. Its key holds no kAny.
struct ArrivedEntry {
  MatchKey key;
  std::array<MatchLink, MatchTable::kNumKinds> links;  // for the key and its three forms with kAny
  ArrivedEntry* older = nullptr;
  ArrivedEntry* newer = nullptr;
};

// Messages without a receive, in the order of their arrival.
//
// A message is in the queue of its key, and in those of the wildcards that receives have asked for: most programs use few.
class UnexpectedQueue {
 public:
  void add(ArrivedEntry& entry) {
    entry.older = newest_;
    entry.newer = nullptr;
    (newest_ == nullptr ? oldest_ : newest_->newer) = &entry;
    newest_ = &entry;
    ++size_;
    MatchTable::for_each_kind(kinds_, [&](std::size_t kind) { insert(entry, kind); });
  }
  // The first message that a receive with that key matches; null if there is none.
  ArrivedEntry* find(const MatchKey& key) {
    if (size_ == 0) return nullptr;
    const std::size_t kind = MatchTable::kind_of(key);
    if ((kinds_ & 1U << kind) == 0) [[unlikely]]
      begin_kind(kind);
    const MatchLink* const link = table_.queue(key, kind).first;
    return link == nullptr ? nullptr : static_cast<ArrivedEntry*>(link->entry);
  }
  // REQUIRES: the entry is in the queue.
  void remove(ArrivedEntry& entry) {
    (entry.older == nullptr ? oldest_ : entry.older->newer) = entry.newer;
    (entry.newer == nullptr ? newest_ : entry.newer->older) = entry.older;
    --size_;
    MatchTable::for_each_kind(kinds_, [&](std::size_t kind) { withdraw(entry, kind); });
  }
  // The oldest message; null if there is none.
  ArrivedEntry* oldest() const { return oldest_; }
  std::size_t size() const { return size_; }

 private:
  void insert(ArrivedEntry& entry, std::size_t kind) {
    entry.links[kind].entry = &entry;
    table_.push(MatchTable::with_wildcards(entry.key, kind), kind, entry.links[kind]);
  }
  void withdraw(ArrivedEntry& entry, std::size_t kind) {
    table_.remove(MatchTable::with_wildcards(entry.key, kind), kind, entry.links[kind]);
  }
  [[gnu::cold, gnu::noinline]] void begin_kind(std::size_t kind);

  MatchTable table_;
  std::uint32_t kinds_ = 1;  // a bit for each kind: without wildcards, and those that begin_kind() has begun
  ArrivedEntry* oldest_ = nullptr;
  ArrivedEntry* newest_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft::mpi
