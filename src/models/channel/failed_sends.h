// Sends that fail before anything has left: a copy of device memory that its device refused, no host memory
// to stage it, a machine that does not take it. The message has its number all the same, and its receive
// waits for that number, so the sender tells the receiving end why, once and on whichever path the message
// was to go.
//
// There an empty message with that tag, from the PE to itself, ends the receive: one that is posted or will
// be, of any memory and on every path, as a message of another size would. So nobody keeps a list of
// receives, and nothing but the machine's own matching touches a buffer. The reason waits here until the
// receive is over.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "weft/base/status.h"
#include "weft/runtime/runtime.h"

namespace weft::channel {

class Channels;
struct ChannelEnd;

class FailedSends {
 public:
  // `channels` must outlive it.
  FailedSends(runtime::Runtime& runtime, Channels& channels);

  // Room that watch() needs in an operation's extra bytes, which it takes for itself.
  static constexpr std::size_t kExtraBytes = sizeof(std::uint32_t);
  // Should `operation`, which sends message `counter`, fail, the receiving end is told. REQUIRES: the peer is
  // known.
  static void watch(ChannelEnd& end, std::uint32_t counter, runtime::OperationState* operation);
  // Who ends the operation ends its receive as well.
  static void unwatch(runtime::OperationState* operation) { operation->set_finisher(nullptr, nullptr); }
  // Tells the receiving end that message `counter` will not come.
  void tell(const ChannelEnd& end, std::uint32_t counter, const base::Status& why);

  // "PE 3 could not send it: ...", once, if that is why the receive of message `counter` has got nothing;
  // else empty.
  std::string take_reason(const ChannelEnd& end, std::uint32_t counter);

 private:
  void on_message(runtime::MessagePtr message);

  runtime::Runtime& runtime_;
  Channels& channels_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> reasons_;  // by end and counter
};

}  // namespace weft::channel
