#include "models/channel/channel_end.h"

#include <fmt/format.h>

#include "weft/chare/chares.h"

namespace weft::channel {

std::string describe(const ChannelEnd& end) {
  auto& chares = end.runtime->model<chare::Chares>();
  return fmt::format("the channel {} - {}, id {}, on PE {}",
                     chares.collection(end.key.self_collection).element_name(end.key.self_index),
                     chares.collection(end.key.peer_collection).element_name(end.key.peer_index), end.key.id,
                     end.runtime->pe());
}

}  // namespace weft::channel
