// Calls of this PE whose futures the program has dropped before the outcome was there. An exception among the outcomes ends the job,
// so the job's end waits for them.
//
// Threads: the PE's.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "weft/runtime/future.h"
#include "weft/runtime/messenger.h"

namespace weft::python {

class LostCalls {
 public:
  explicit LostCalls(runtime::Messenger& messenger) : messenger_(messenger) {}

  // `call` names it.
  void start(const void* call, std::string text) { texts_.emplace(call, std::move(text)); }
  // Its outcome is there, or the program has found its future again.
  void end(const void* call) {
    texts_.erase(call);
    if (texts_.empty() && none_) [[unlikely]]
      std::exchange(none_, std::nullopt)->set();
  }
  // Ready when there is none.
  runtime::Future<> none() {
    if (none_) return *none_;
    runtime::Future<> none(messenger_);
    if (texts_.empty()) {
      none.set();
    } else {
      none_ = none;
    }
    return none;
  }
  // What each is of.
  const std::unordered_map<const void*, std::string>& texts() const { return texts_; }

 private:
  runtime::Messenger& messenger_;
  std::unordered_map<const void*, std::string> texts_;
  std::optional<runtime::Future<>> none_;
};

}  // namespace weft::python
