// Messages that a full ring of a peer has not taken: they are sent in their order when it has room.
//
// Threads: the PE's. Invariant: each completion is called once, or handed out by take_completions().
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "machine/machine.h"

namespace weft::machine {

class WaitingMessages {
 public:
  // Copies the header, and the payload too if `completion` is null. Else the payload stays the caller's until the completion.
  void add(int pe, AmId id, std::span<const std::byte> header, std::span<const std::byte> payload,
           base::Completion* completion);
  bool is_empty() const { return by_pe_.empty(); }

  // Calls send(pe, id, header, payload) for the first message to each PE, and for the next one as long as that returns true: the message
  // has been sent, and its completion is called. Calls is_over(pe) for a PE without further messages. Returns whether any was sent.
  template <class Send, class IsOver>
  bool send(Send send_one, IsOver is_over) {
    bool any = false;
    int pe = -1;
    for (auto at = by_pe_.begin(); at != by_pe_.end(); at = by_pe_.upper_bound(pe)) {
      pe = at->first;
      // A completion may add messages behind those that are here, or take all away.
      for (; at != by_pe_.end() && !at->second.empty(); at = by_pe_.find(pe)) {
        Waiting& first = at->second.front();
        const std::size_t size_bytes = first.payload_bytes().size();
        if (!send_one(pe, first.id, std::span<const std::byte>(first.header), first.payload_bytes())) break;
        any = true;
        base::Completion* const completion = first.completion;
        at->second.pop_front();
        if (completion != nullptr) completion->function(completion, {}, size_bytes);
      }
      if (at == by_pe_.end() || !at->second.empty()) continue;
      by_pe_.erase(at);
      is_over(pe);
    }
    return any;
  }

  // As send() for the messages to one PE, up to the first that has a completion: for start calls, in which none may run. Returns whether
  // none waits for the PE any more.
  template <class Send>
  bool send_copies(int pe, Send send_one) {
    const auto at = by_pe_.find(pe);
    if (at == by_pe_.end()) return true;
    while (!at->second.empty()) {
      const Waiting& first = at->second.front();
      if (first.completion != nullptr ||
          !send_one(pe, first.id, std::span<const std::byte>(first.header), first.payload_bytes()))
        return false;
      at->second.pop_front();
    }
    by_pe_.erase(at);
    return true;
  }

  // Nothing waits any more.
  std::vector<base::Completion*> take_completions();
  // Nothing waits for the PE any more.
  std::vector<base::Completion*> take_completions(int pe);

 private:
  struct Waiting {
    AmId id;
    std::vector<std::byte> header;
    std::vector<std::byte> copy;
    std::span<const std::byte> payload;  // with a completion
    base::Completion* completion;
    std::span<const std::byte> payload_bytes() const { return completion != nullptr ? payload : copy; }
  };

  std::map<int, std::deque<Waiting>> by_pe_;
};

}  // namespace weft::machine
