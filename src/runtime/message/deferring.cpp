// Messages whose place is chosen later: they wait, and are placed, posted again or refused.
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "runtime/message/attached.h"
#include "runtime/message/boundary.h"
#include "runtime/message/receiving.h"

namespace weft::runtime {

std::vector<ReceiveBuffer> Receiving::receive_buffers_of(Message& message) const {
  const Attached& attached = message.attached();
  std::vector<ReceiveBuffer> receive_buffers(attached.buffers.size());
  for (std::size_t i = 0; i < receive_buffers.size(); ++i) {
    receive_buffers[i].size_bytes = attached.buffers[i].buffer().size_bytes;
    receive_buffers[i].place = scheduler_.own_place(attached.first_kind(i));
  }
  return receive_buffers;
}

void Receiving::place(MessagePtr message, std::span<ReceiveBuffer> receive_buffers) {
  if (scheduler_.ending()) return;  // it has been refused
  if (receive_buffers.size() != message->attachments().size()) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("{} places are given for the {} buffers of a message; fill in what "
                                   "receive_buffers_of() returned",
                                   receive_buffers.size(), message->attachments().size()));
  }
  undefer(*message);
  message->attached().posted = true;
  MessagePtr complete = land_at(std::move(message), receive_buffers, true);
  if (complete != nullptr) enqueue_landed(complete.release());
}

void Receiving::post_again(MessagePtr message) {
  if (scheduler_.ending()) return;  // it has been refused
  undefer(*message);
  enqueue_to_post(message.release());
}

void Receiving::defer(Message& message) {
  Attached& attached = message.attached();
  attached.deferred_at = deferred_.insert(deferred_.end(), &message);
  message.receiving = this;
  attached.on_release = [](MessagePtr released) {
    Receiving& self = *released->receiving;
    self.deferred_.erase(released->attached().deferred_at);
    at_boundary(self.scheduler_, "the release of a deferred message",
                [&] { self.refuse(std::move(released)); });
  };
}

void Receiving::undefer(Message& message) {
  Attached& attached = message.attached();
  if (std::exchange(attached.on_release, nullptr) == nullptr) return;
  deferred_.erase(attached.deferred_at);
}

// Lands the buffers, so that the sender's memory becomes free, and does not handle the message.
void Receiving::refuse(MessagePtr message) {
  if (scheduler_.closed()) return;
  std::vector<ReceiveBuffer> receive_buffers = receive_buffers_of(*message);
  land_at(std::move(message), receive_buffers, false);
}

void Receiving::refuse_deferred() {
  for (Message* message : std::exchange(deferred_, {})) {
    message->attached().on_release = nullptr;
    refuse(message->share());
  }
}

}  // namespace weft::runtime
