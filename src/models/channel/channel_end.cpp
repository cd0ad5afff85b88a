#include "models/channel/channel_end.h"

#include "weft/chare/chares.h"

#include "base/format.h"

namespace weft::channel {

std::string describe(const ChannelEnd& end) {
  auto& chares = end.runtime->model<chare::Chares>();
  return base::format("the channel {} - {}, id {}, on PE {}",
                      chares.collection(end.key.self_collection).element_name(end.key.self_index),
                      chares.collection(end.key.peer_collection).element_name(end.key.peer_index),
                      end.key.id & ~(kOutOfBand | kQueuedChannel), end.runtime->pe());
}

}  // namespace weft::channel
