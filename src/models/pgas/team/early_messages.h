// Messages that wait on this PE for something that it has not made yet: a team, a distributed object. Threads: the PE's.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "weft/runtime/messenger.h"

namespace weft::pgas {

class EarlyMessages {
 public:
  void keep(runtime::MessagePtr message) { messages_.push_back(std::move(message)); }
  // For a poster, which must return kDefer then.
  void keep_deferred(runtime::MessagePtr message) { deferred_.push_back(std::move(message)); }
  std::size_t size() const { return messages_.size() + deferred_.size(); }

  // Has the kept messages handled again, in later turns.
  void hand_on(runtime::Messenger& messenger) {
    for (runtime::MessagePtr& message : std::exchange(messages_, {}))
      messenger.send(messenger.pe(), std::move(message));
    for (runtime::MessagePtr& message : std::exchange(deferred_, {}))
      messenger.post_again(std::move(message));
  }

 private:
  std::vector<runtime::MessagePtr> messages_;
  std::vector<runtime::MessagePtr> deferred_;
};

}  // namespace weft::pgas
