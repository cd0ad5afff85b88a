// weft.Channel.
#pragma once

#include <cstdint>

#include "weft/channel/channel.h"

#include "chare/classes/chare.h"
#include "support/support.h"

namespace weft::python {

// Who the two ends of a channel are, from the arguments that name them; `id` may be null. Throws base::Error, whose message begins
// with `use`.
struct ChannelName {
  PyChare& self;
  channel::Peer peer;
  std::uint32_t id;
};
ChannelName channel_name_of(PyObject* self, PyObject* peer, PyObject* id, const char* use);

void init_channel(PyObject* module);

}  // namespace weft::python
