#include "machine/peer_memory/mapping/control_messages.h"

#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

namespace weft::machine {

static_assert(std::is_trivially_copyable_v<ControlMessage>);

namespace {

// A send that nothing waits for.
struct Sending : base::Completion {
  Sending()
      : base::Completion(
            [](base::Completion* self, base::Status, std::size_t) { delete static_cast<Sending*>(self); }) {}
};

}  // namespace

base::Status ControlMessages::open() {
  return machine_.transport_set_am_handler(kPeerMemoryAmId, &ControlMessages::on_message, this);
}

void ControlMessages::send(int pe, ControlMessage message) {
  if (is_closed_) return;
  message.source_pe = machine_.pe();
  auto sending = std::make_unique<Sending>();
  const base::Status status = machine_.transport_am_send(
      pe, kPeerMemoryAmId, std::as_bytes(std::span(&message, 1)), {}, sending.get());
  if (status.is_pending()) static_cast<void>(sending.release());
}

void ControlMessages::on_message(void* self, AmArrival& arrival) {
  auto& messages = *static_cast<ControlMessages*>(self);
  ControlMessage message;
  if (messages.is_closed_ || arrival.header.size() != sizeof message) return;
  std::memcpy(&message, arrival.header.data(), sizeof message);
  if (message.source_pe < 0 || message.source_pe >= messages.machine_.num_pes()) return;
  messages.handler_(message);
}

}  // namespace weft::machine
