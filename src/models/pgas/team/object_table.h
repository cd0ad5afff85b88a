// The distributed objects of a team on one PE, by number. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "weft/runtime/messenger.h"

#include "models/pgas/team/early_messages.h"

namespace weft::pgas {

class ObjectTable {
 public:
  struct ObjectEntry {
    void* object = nullptr;
    std::uint64_t type = 0;
  };

  explicit ObjectTable(runtime::Messenger& messenger)
      : messenger_(messenger), self_(std::make_shared<ObjectTable*>(this)) {}
  ~ObjectTable() { *self_ = nullptr; }
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;

  // For the names of objects, which may outlive the table. The pointer is null then.
  const std::shared_ptr<ObjectTable*>& self() const { return self_; }

  // Returns its number, which all ranks give in the same order. Messages that wait for it are handled in later turns.
  std::uint64_t add(const ObjectEntry& entry) {
    const std::uint64_t number = next_++;
    objects_.emplace(number, entry);
    auto waiting = waiting_.extract(number);
    if (!waiting.empty()) waiting.mapped().hand_on(messenger_);
    return number;
  }
  void remove(std::uint64_t number) { objects_.erase(number); }
  // Null if it has been destroyed, or is not made yet.
  const ObjectEntry* find(std::uint64_t number) const {
    const auto found = objects_.find(number);
    return found == objects_.end() ? nullptr : &found->second;
  }
  bool is_made(std::uint64_t number) const { return number < next_; }
  // REQUIRES: it is not made.
  void wait_for(std::uint64_t number, runtime::MessagePtr message) {
    waiting_[number].keep(std::move(message));
  }
  // The messages that wait for objects.
  std::size_t num_waiting() const {
    std::size_t count = 0;
    for (const auto& [number, messages] : waiting_) count += messages.size();
    return count;
  }

 private:
  runtime::Messenger& messenger_;
  std::shared_ptr<ObjectTable*> self_;
  std::uint64_t next_ = 0;
  std::unordered_map<std::uint64_t, ObjectEntry> objects_;
  std::unordered_map<std::uint64_t, EarlyMessages> waiting_;
};

}  // namespace weft::pgas
