#include "machine/peer_memory/waiting_sends.h"

#include <utility>

namespace weft::machine {

struct WaitingSends::Operation final : PeerOperation {
  explicit Operation(const Send& send_in) : PeerOperation(send_in.user), send(send_in) {}
  void cancel() override {}  // a send that is cancelled would leave its receive without a message
  Send send;
};

WaitingSends::WaitingSends(PeerContext& context) : context_(context) {}
WaitingSends::~WaitingSends() = default;

void WaitingSends::add(const Send& send, bool is_announced) {
  sends_.emplace(std::tuple(send.stream.peer, send.stream.name, send.message.number),
                 std::make_unique<Operation>(send));
  if (is_announced) return;
  context_.control.send(send.stream.peer, {.type = ControlMessage::Type::kWaiting,
                                           .number = send.message.number,
                                           .stream = send.stream.name,
                                           .file = {}});
}

std::optional<WaitingSends::Send> WaitingSends::take(int pe, Tag stream, std::uint32_t message) {
  const auto found = sends_.extract({pe, stream, message});
  if (found.empty()) return {};
  static_cast<void>(found.mapped()->take_user());
  return found.mapped()->send;
}

void WaitingSends::close() {
  const base::Status closed{base::StatusCode::kClosed,
                            "the machine was closed before the message was received"};
  for (auto& [key, operation] : std::exchange(sends_, {})) operation->complete(closed, 0);
}

}  // namespace weft::machine
