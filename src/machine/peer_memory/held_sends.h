// The sends of peers that wait for receives which this PE has not started. waiting_sends.h has the other side.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "machine/peer_memory/mapping/peer_stream.h"

namespace weft::machine {

class HeldSends {
 public:
  // The send of that message waits. False if too many of the stream do: it must be answered now.
  bool add(IncomingStream& stream, std::uint32_t message);
  // Whether the send of that message waited; it waits no more.
  bool take(IncomingStream& stream, std::uint32_t message);

  // The stream ends.
  void forget(const IncomingStream& stream) { messages_.erase(stream.name); }

 private:
  std::map<Tag, std::set<std::uint32_t>> messages_;  // by stream; IncomingStream::held_sends counts them
};

}  // namespace weft::machine
