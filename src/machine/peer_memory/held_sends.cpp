#include "machine/peer_memory/held_sends.h"

namespace weft::machine {

namespace {

// A sender that has more in one stream is not trusted with more memory.
constexpr std::size_t kMostInStream = 4096;

}  // namespace

bool HeldSends::add(IncomingStream& stream, std::uint32_t message) {
  std::set<std::uint32_t>& messages = messages_[stream.name];
  if (messages.size() == kMostInStream) return false;
  if (messages.insert(message).second) ++stream.held_sends;
  return true;
}

bool HeldSends::take(IncomingStream& stream, std::uint32_t message) {
  const auto messages = messages_.find(stream.name);
  if (messages == messages_.end() || messages->second.erase(message) == 0) return false;
  --stream.held_sends;
  return true;
}

}  // namespace weft::machine
