#include "models/channel/failed_sends.h"

#include <string>
#include <utility>

#include "base/format.h"
#include "machine/machine.h"
#include "machine/tag.h"
#include "models/channel/checked_messages.h"
#include "models/channel/closed_ends.h"

namespace weft::channel {

namespace {

struct FailedSend {
  std::uint32_t to_end = 0;
  std::uint32_t from_end = 0;
  std::uint32_t counter = 0;
};

}  // namespace

FailedSends::FailedSends(runtime::Runtime& runtime, const EndTable& ends, runtime::HandlerId handler)
    : runtime_(runtime), ends_(ends), handler_(handler) {
  runtime_.set_handler(
      handler_,
      [](void* self, runtime::MessagePtr message) {
        static_cast<FailedSends*>(self)->on_message(std::move(message));
      },
      this);
}

void FailedSends::watch(ChannelEnd& end, std::uint32_t counter, runtime::OperationState* operation) {
  *reinterpret_cast<std::uint32_t*>(operation->extra()) = counter;
  ++end.watched_sends;
  operation->set_finisher(&on_sent, &end);
}

void FailedSends::on_sent(runtime::OperationState* sent, void* context) {
  auto& from = *static_cast<ChannelEnd*>(context);
  --from.watched_sends;
  if (from.needs_poll) [[unlikely]]
    from.closed_ends->poll_later(from);
  const base::Status& status = sent->status();
  // With kPeerFailed the receiver has failed, or its PE: it need not be told.
  if (status.failed() && status.code() != base::StatusCode::kPeerFailed) {
    const std::uint32_t number = *reinterpret_cast<const std::uint32_t*>(sent->extra());
    from.failed_sends->tell(from, number, status);
  } else if (sent->extra_bytes() > kExtraBytes) [[unlikely]] {
    UnchangedSends::check(sent, kExtraBytes, from, *reinterpret_cast<const std::uint32_t*>(sent->extra()));
  }
}

void FailedSends::tell(const ChannelEnd& end, std::uint32_t counter, const base::Status& why) {
  if (runtime_.exiting()) return;  // the job ends all receives
  const FailedSend failed{end.peer.number, end.number, counter};
  runtime_.send(static_cast<int>(end.peer.pe),
                runtime::Message::pack(runtime_, handler_, failed, std::string(why.message())));
}

void FailedSends::on_message(runtime::MessagePtr message) {
  FailedSend failed;
  std::string why;
  Pup p = message->unpacker();
  p | failed | why;
  const std::uint32_t pe = message->envelope().source_pe;
  const ChannelEnd* const end = ends_.find(failed.to_end, {pe, failed.from_end});
  if (end == nullptr) {
    if (ends_.is_gone(failed.to_end)) return;
    runtime_.fail(
        base::format("PE {} could not send message {} from its channel end {} to end {} of PE {}; these ends "
                     "are not connected",
                     pe, failed.counter, failed.from_end, failed.to_end, runtime_.pe()));
    return;
  }
  end_receive(*end, failed.counter, base::format("PE {} could not send it: {}", pe, why));
}

void FailedSends::end_receive(const ChannelEnd& end, std::uint32_t counter, std::string why) {
  auto& reason = reasons_[{end.number, counter}];
  if (!reason.empty()) return;
  reason = std::move(why);
  // If it fails, so does the job, because nothing awaits it.
  auto* empty = runtime::OperationState::create(runtime_);
  empty->started(
      runtime_.machine().tag_send(runtime_.pe(), end.receive_tags[counter], {}, empty->completion()), 0);
  runtime::Operation(empty).detach();
}

std::string FailedSends::take_reason(const ChannelEnd& end, std::uint32_t counter) {
  auto found = reasons_.extract({end.number, counter});
  return found.empty() ? std::string() : std::move(found.mapped());
}

}  // namespace weft::channel
