// Messages that are handed over within a PE, see handed_over.h.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weft/channel/channel.h"
#include "weft/runtime/attachment.h"

#include "models/channel/channels.h"

namespace weft::channel {

bool Channels::hand_over(ChannelEnd& end, runtime::Attachment& block) {
  if (!end.sends_at_once || end.out.on_this_pe == nullptr) return false;
  ChannelEnd* const receiver = ends_.find(end.peer.number);
  if (receiver == nullptr || !receiver->handed_over.has_room()) return false;
  // A receive that was started before waits for its tag.
  if (static_cast<std::int32_t>(receiver->in.next - end.out.next) > 0) return false;
  const std::size_t size_bytes = block.buffer().size_bytes;
  if (runtime_.meter().counts_messages()) [[unlikely]]
    runtime_.meter().count_message({end.key.peer_collection, end.key.peer_index}, size_bytes);
  runtime_.count_sent();
  end.sent_in_place.push(end.out.next, size_bytes);  // for a chare that moves twice before it receives
  receiver->handed_over.push(end.out.next++, std::move(block));
  if (end.window.count(size_bytes)) end_segment(end);
  return true;
}

runtime::Attachment Channels::take_handed_over(ChannelEnd& end) {
  if (end.num_kept != 0) [[unlikely]]
    stay_for_now(end);
  runtime::Attachment block = end.handed_over.take(end.in.next);
  if (!block) return block;
  ++end.in.next;
  runtime_.count_processed();
  if (end.received.count(block.buffer().size_bytes)) report_received(end);
  if (end.needs_poll) end.closed_ends->poll_later(end);
  return block;
}

bool Channel::hand_over(runtime::Attachment& block) const { return end_->channels->hand_over(*end_, block); }

runtime::Attachment Channel::take_handed_over() const { return end_->channels->take_handed_over(*end_); }

}  // namespace weft::channel
