// The channel model on one PE: the ends of its chares, and how the two ends of a channel find each other.
//
// Each end has a number of its own on its PE, under which it receives. The sender puts the number into the
// tag, so that a message needs nothing besides. When an end is made, it tells its peer the number, once,
// through the location service. Sends wait until the peer's number is known, receives do not. Each end
// counts the messages of each direction; the counters keep the order, and wrap.
//
// Host memory is one tagged message. Device memory goes to the machine's peer memory, which copies it or
// sends it with the same tag.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/channel/channel.h"
#include "weft/runtime/runtime.h"

#include "models/channel/channel_end.h"
#include "models/channel/checked_messages.h"
#include "models/channel/closed_ends.h"
#include "models/channel/end_table.h"
#include "models/channel/failed_sends.h"

namespace weft::channel {

// The model's message handlers: offsets in its range, see Channels::handler().
enum ChannelHandler : runtime::HandlerId {
  kAnnouncement,
  kFailedSend,
  kDescription,
  kReceived,
  kEndClosed,
  kNumChannelHandlers
};

class Channels final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{
      .name = "channel", .num_handlers = kNumChannelHandlers, .uses_tags = true};

  Channels(runtime::Runtime& runtime, const runtime::ModelRange& range);
  void close() override;
  // WEFT_CHECK, the same on all PEs: check mode, see CheckedMessages. WEFT_CALL_LIMIT: see await_room().
  std::vector<runtime::ModelOption> options() override;
  std::vector<std::pair<std::string, std::string>> fingerprint() const override;
  // An end of the element whose sends wait for its peer, or that has messages of device memory in flight.
  std::string obstacle_to_moving(runtime::ElementId element) const override;
  // Closes the element's ends, see closing.cpp.
  void element_ends(runtime::ElementId element, const std::shared_ptr<void>& element_itself) override;
  void element_has_ended(runtime::ElementId element) override;

  runtime::HandlerId handler(ChannelHandler which) const { return range_.first_handler + which; }

  // The end of `self` whose peer is `peer`, made at first use. If `peer` is `self`, the end is its own peer. Throws Error
  // when the PE has as many ends as tags can tell apart.
  ChannelEnd& end(chare::ChareBase& self, const Peer& peer, std::uint64_t id);
  // The end that Channel::beside() gives.
  ChannelEnd& end_beside(const ChannelEnd& end);
  const EndTable& ends() const { return ends_; }
  // For tests of wrapping: what new ends count from. The same on every PE.
  void set_first_counter(std::uint32_t counter) { first_counter_ = counter; }
  // Check mode, see CheckedMessages. REQUIRES: no end was made; the same on every PE.
  void turn_on_checks() { is_checked_ = true; }
  // For tests: what the sends of one end that wait may hold of this PE's memory.
  void set_limit(std::int64_t bytes) { limit_bytes_ = bytes; }

  // --- For ends that are closed, or whose peer is
  // Why no message comes or goes: which collection has been destroyed. With an operation, such as "a send", also where.
  static base::Status closed_status(const ChannelEnd& end, std::string_view operation = {});
  // Throws closed_status() if the end is closed and its chare still exists. In the chare's destructor it returns.
  static void expect_open(const ChannelEnd& end, std::string_view operation);

  std::shared_ptr<void> hold(ChannelEnd& end);

  // --- Flow control, for Channel and the completions of its operations
  // Holds back a send whose window is closed: beyond a first amount of waiting sends it moves communication forward
  // inside the call, for a bounded time. Throws Error beyond the limit.
  [[gnu::cold, gnu::noinline]] void await_room(ChannelEnd& end);
  // The last message of a segment has been sent.
  [[gnu::cold, gnu::noinline]] static void end_segment(ChannelEnd& end);
  // Tells the peer how many messages have been received.
  [[gnu::cold, gnu::noinline]] void report_received(ChannelEnd& end);

 private:
  void announce(const ChannelEnd& end, bool is_closed = false);
  void on_announcement(runtime::MessagePtr message);
  void connect(ChannelEnd& end, EndAddress peer);
  void on_received(runtime::MessagePtr message);
  static void start_waiting_sends(ChannelEnd& end);

  void close_end(ChannelEnd& end, const std::shared_ptr<void>& chare);
  void fail_waiting_sends(ChannelEnd& end);
  // Tells the peer that this end sends no more. REQUIRES: the peer is known.
  void tell_closed(ChannelEnd& end);
  void answer_closed(EndAddress announced);
  void on_end_closed(runtime::MessagePtr message);
  // The peer sends no message from number `sent` on, a claim that is checked.
  void peer_closes(ChannelEnd& end, std::uint32_t sent);
  // Receives and drops what the peer of a closed end has sent, so that its sends are over.
  void drain(ChannelEnd& end);
  void end_is_over(ChannelEnd& end);

  runtime::Runtime& runtime_;
  runtime::ModelRange range_;
  EndTable ends_;
  // Ends that are announced to chares which have not made theirs yet.
  struct EarlyEnd {
    EndAddress address;
    bool is_closed = false;  // and has been answered: the chare's end is never made
  };
  std::map<ChannelKey, EarlyEnd> early_;
  std::uint32_t first_counter_ = 0;
  FailedSends failed_sends_;
  CheckedMessages checked_messages_;
  bool is_checked_ = false;
  std::int64_t limit_bytes_;
  ClosedEnds closed_ends_;
  std::shared_ptr<void> alive_ = std::make_shared<char>();  // goes before the ends
};

}  // namespace weft::channel
