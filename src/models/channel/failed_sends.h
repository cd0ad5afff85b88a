// Sends that fail before anything has left: a device does not copy, there is no host memory to stage the
// message, the machine does not take it. Such a message keeps its number, and its receive waits for that
// number, so the sender tells the receiving end why, once, on whichever path the message was to go.
//
// The receiving PE then sends an empty message with that tag to itself. It ends the receive, posted already
// or later, of any memory and on every path, as a message of another size would. The reason waits here until
// the receive is over. So no list of receives is needed, and only the machine's matching touches a buffer.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "weft/base/status.h"
#include "weft/runtime/runtime.h"

#include "models/channel/end_table.h"

namespace weft::channel {

class FailedSends {
 public:
  // `runtime` and `ends` must outlive it; `handler` is its own.
  FailedSends(runtime::Runtime& runtime, const EndTable& ends, runtime::HandlerId handler);

  // Room in an operation's extra bytes that watch() uses, alone.
  static constexpr std::size_t kExtraBytes = sizeof(std::uint32_t);
  // If `operation`, which sends message `counter`, fails, the receiving end is told. REQUIRES: the peer is
  // known.
  static void watch(ChannelEnd& end, std::uint32_t counter, runtime::OperationState* operation);
  // Whether watch() was called for it.
  static bool watches(const runtime::OperationState& operation) { return operation.finisher() == &on_sent; }
  // Tells the receiving end that message `counter` will not come.
  void tell(const ChannelEnd& end, std::uint32_t counter, const base::Status& why);

  // Ends the receive of message `counter`, posted already: the message does not come.
  void end_receive(const ChannelEnd& end, std::uint32_t counter, std::string why);

  // "PE 3 could not send it: ...", once, if that is why the receive of message `counter` got nothing; else
  // empty.
  std::string take_reason(const ChannelEnd& end, std::uint32_t counter);
  // That end of this PE is gone.
  void forget(std::uint32_t end_number) {
    reasons_.erase(reasons_.lower_bound({end_number, 0}), reasons_.lower_bound({end_number + 1, 0}));
  }

 private:
  static void on_sent(runtime::OperationState* sent, void* context);
  void on_message(runtime::MessagePtr message);

  runtime::Runtime& runtime_;
  const EndTable& ends_;
  runtime::HandlerId handler_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> reasons_;  // by end and counter
};

}  // namespace weft::channel
