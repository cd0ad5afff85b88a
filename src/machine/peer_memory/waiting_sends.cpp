#include "machine/peer_memory/waiting_sends.h"

#include <atomic>
#include <utility>

#include "machine/peer_memory/mapping/mailbox.h"

namespace weft::machine {

struct WaitingSends::WaitingOperation final : PeerOperation {
  explicit WaitingOperation(const Send& send_in) : PeerOperation(send_in.user), send(send_in) {}
  void cancel() override {}  // a send that is cancelled would leave its receive without a message
  Send send;
};

WaitingSends::WaitingSends(PeerContext& context) : context_(context) {}
WaitingSends::~WaitingSends() = default;

void WaitingSends::add(const Send& send, bool is_announced) {
  sends_.emplace(std::tuple(send.stream.peer, send.stream.name, send.message.number),
                 std::make_unique<WaitingOperation>(send));
  context_.machine.attention().wanted = true;
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

std::vector<WaitingSends::Send> WaitingSends::take_posted() {
  std::vector<Send> posted;
  for (auto first = sends_.begin(); first != sends_.end();) {
    const auto [pe, stream, message] = first->first;
    const Mailbox* const mailbox = first->second->send.stream.outbox->mailbox;
    const bool is_posted =
        mailbox != nullptr && !first->second->send.needs_answer &&
        mailbox->slots[message % kSlots].word.load(std::memory_order_acquire) == MailboxSlot::posted(message);
    const auto next_stream = sends_.lower_bound({pe, stream + 1, 0});
    if (is_posted) {
      static_cast<void>(first->second->take_user());
      posted.push_back(std::move(first->second->send));
      sends_.erase(first);
    }
    first = next_stream;
  }
  return posted;
}

void WaitingSends::close() {
  const base::Status closed{base::StatusCode::kClosed,
                            "the machine was closed before the message was received"};
  for (auto& [key, operation] : std::exchange(sends_, {})) operation->complete(closed, 0);
}

}  // namespace weft::machine
