// Objects on a channel: Python values of any type and size. The receiver knows neither.
//
// Each object has a first message on its channel, and maybe bodies, which are messages on a second channel between the same
// chares (Channel::out_of_band):
//
//     the encoded value     in the first message if it is small, else a body
//     large arrays of it    a body each, behind that of the value
//
// The receives of bodies are posted when the first message has told their sizes. First messages are handled in the order of
// their receives, so each body meets its own receive. A body is a block of the PE's pool. Within a PE the receiver gets the
// block itself (Channel::hand_over), and an array that is received is one over its block: it was copied once, by the send.
//
// Bodies are numbered. Both counts travel with the end when its chare moves (AttachedState::numbers), and a chare with a
// receive of an object under way does not move. If Channel.recv(into) has taken a first message as plain memory, its body is skipped.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "weft/channel/channel.h"
#include "weft/runtime/attachment.h"

#include "codec/encoder.h"
#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// The objects of one end of a channel. The end owns it.
class ObjectStream {
 public:
  // The one of that end; made by the first call.
  static ObjectStream& of(channel::Channel& channel);
  explicit ObjectStream(channel::Channel channel)
      : channel_(channel),
        bodies_sent_(channel_.attached_state().numbers[0]),
        bodies_received_(channel_.attached_state().numbers[1]) {}

  // A weft.Operation. Throws PythonError or base::Error if the value cannot travel or the end is closed.
  Ref send(Engine& engine, PyObject* value);
  // A weft.Future of the object. Throws base::Error if the end is closed.
  Ref receive(Engine& engine);

 private:
  struct First;
  struct Receive;
  class BodySends;

  void handle_arrived();
  void handle(const std::shared_ptr<Receive>& receive);
  void send_bodies(Engine& engine, const First& first, Encoder& encoder, BodySends& sends);
  void receive_bodies(const std::shared_ptr<Receive>& receive, std::span<const std::uint64_t> sizes);
  void receive_body(const std::shared_ptr<Receive>& receive, channel::Channel& bodies,
                    std::uint64_t size_bytes);
  // A body of the receive is here or has failed, or all its receives are posted.
  static void body_ended(const channel::Channel& channel, Receive& receive);
  // A receive of an object is over.
  static void ended(const channel::Channel& channel);
  void skip_bodies(channel::Channel& bodies, std::uint32_t number);

  channel::Channel channel_;
  std::uint32_t& bodies_sent_;
  std::uint32_t& bodies_received_;
  // Receives whose first message has not been handled, in order.
  std::deque<std::shared_ptr<Receive>> receives_;
};

}  // namespace weft::python
