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
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/channel/channel.h"
#include "weft/runtime/attachment.h"
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
  kMoveNote,
  kNumChannelHandlers
};

struct TravellingEnd;

class Channels final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{
      .name = "channel", .num_handlers = kNumChannelHandlers, .uses_tags = true};

  Channels(runtime::Runtime& runtime, const runtime::ModelRange& range);
  void close() override;
  // WEFT_CHECK, the same on all PEs: check mode, see CheckedMessages. WEFT_CALL_LIMIT: see await_room().
  std::vector<runtime::ModelOption> options() override;
  std::vector<std::pair<std::string, std::string>> fingerprint() const override;
  // An element with a QueuedChannel that is connected stays: its peer's device has addresses of this PE.
  base::Status obstacle_to_moving(runtime::ElementId element) const override;
  // An element that has ends is not saved.
  base::Status obstacle_to_saving(runtime::ElementId element) const override;
  base::Status obstacle_to_removing(runtime::ElementId element) const override;
  // Moves the element's ends, see moving.cpp.
  runtime::MoveState prepare_to_move(runtime::ElementId element, bool may_wait) override;
  void stay(runtime::ElementId element) override;
  void pack_moving(runtime::ElementId element, Pup& p) override;
  void element_has_moved(runtime::ElementId element, const std::shared_ptr<void>& element_itself) override;
  void unpack_moving(runtime::ElementId element, Pup& p) override;
  // Closes the element's ends, see closing.cpp.
  void element_ends(runtime::ElementId element, const std::shared_ptr<void>& element_itself) override;
  void element_has_ended(runtime::ElementId element) override;

  // What chares wait for at their ends.
  void list_waits(runtime::WaitList& waits) const override;
  bool describe_operation(const runtime::OperationState& operation, runtime::Wait& wait,
                          runtime::WaitList& waits) const override;

  runtime::HandlerId handler(ChannelHandler which) const { return range_.first_handler + which; }

  // The end of `self` whose peer is `peer`, made at first use. If `peer` is `self`, the end is its own peer. Throws Error
  // when the PE has as many ends as tags can tell apart.
  ChannelEnd& end(const chare::ChareBase& self, const Peer& peer, std::uint64_t id);
  // The end of an element that is being restored from a checkpoint, as if no message had been sent. Throws Error(kCorrupt) if it
  // cannot be on this PE.
  ChannelEnd& restored_end(const ChannelKey& key);
  // The end that Channel::out_of_band() gives.
  ChannelEnd& out_of_band_end(ChannelEnd& end);
  const EndTable& ends() const { return ends_; }
  // For tests of wrapping: what new ends count from. The same on every PE.
  void set_first_counter(std::uint32_t counter) { first_counter_ = counter; }
  // Check mode, see CheckedMessages. REQUIRES: no end was made; the same on every PE.
  void turn_on_checks() { is_checked_ = true; }
  // For tests: what the sends of one end that wait may hold of this PE's memory.
  void set_limit(std::int64_t bytes) { limit_bytes_ = bytes; }

  // The size of a receive of the program; nothing for another operation.
  static std::optional<std::size_t> asked_bytes(const runtime::OperationState& operation);

  // --- For ends that are closed, or whose peer is
  // Why no message comes or goes: which collection has been destroyed. With an operation, such as "a send", also where.
  static base::Status closed_status(const ChannelEnd& end, std::string_view operation = {});
  // Throws closed_status() if the end is closed and its chare still exists. In the chare's destructor it returns.
  static void expect_open(const ChannelEnd& end, std::string_view operation);

  std::shared_ptr<void> hold(ChannelEnd& end);

  // --- Within the PE, see handed_over.h
  bool hand_over(ChannelEnd& end, runtime::Attachment& block);
  runtime::Attachment take_handed_over(ChannelEnd& end);

  // --- Flow control, for Channel and the completions of its operations
  // Holds back a send whose window is closed: beyond a first amount of waiting sends it moves communication forward
  // inside the call, for a bounded time. Throws Error beyond the limit.
  [[gnu::cold, gnu::noinline]] void await_room(ChannelEnd& end);
  // The last message of a segment has been sent.
  [[gnu::cold, gnu::noinline]] static void end_segment(ChannelEnd& end);
  // Tells the peer how many messages have been received.
  [[gnu::cold, gnu::noinline]] void report_received(ChannelEnd& end);

  // --- For operations of an end whose chare is about to move
  // An operation has been started that the move must wait for, or that needs messages which the peer holds back.
  void used_while_asking(ChannelEnd& end);
  // The chare does not move yet: its peers go on. The move is tried again.
  void stay_for_now(const ChannelEnd& end);

 private:
  struct MoveNote;
  enum class NoteKind : std::uint32_t;

  // As end(), for the chare and the peer that the key names.
  ChannelEnd& end_of(const ChannelKey& key);
  // An end with a number of its own. Throws Error when the PE has as many ends as tags can tell apart.
  ChannelEnd& make_end(const ChannelKey& key);
  void announce(const ChannelEnd& end, bool is_closed = false);
  void on_announcement(runtime::MessagePtr message);
  // Whether there can be such an end; otherwise the job ends.
  bool expect_address(EndAddress from, const ChannelKey& key);
  void connect(ChannelEnd& end, EndAddress peer, std::uint32_t version);
  // The peer has this address, which may be known or an earlier one.
  void learn_address(ChannelEnd& end, EndAddress peer, std::uint32_t version);
  void set_peer(ChannelEnd& end, EndAddress peer);
  void change_peer(ChannelEnd& end);
  [[nodiscard]] EndAddress address_of(const ChannelEnd& end) const {
    return {static_cast<std::uint32_t>(runtime_.pe()), end.number};
  }

  void send_note(const ChannelEnd& end, NoteKind kind, std::uint32_t round, std::uint32_t next,
                 const std::vector<SentSize>& sizes);
  void on_note(runtime::MessagePtr message);
  void on_note_to_end(ChannelEnd& end, const MoveNote& note);
  void on_early_note(const MoveNote& note);
  void on_stopped(ChannelEnd& end, const MoveNote& note, std::vector<SentSize> sizes);
  void ask_to_stop(ChannelEnd& end);
  // The peer goes on, with the end where it is now.
  void release_peer(const ChannelEnd& end);
  // Receives what the peer has sent and the program has not asked for.
  void take_early(ChannelEnd& end);
  void wait_to_move(ChannelEnd& end);
  // An operation of the end is over.
  void poll_moves(ChannelEnd& end);
  ChannelEnd& unpack_end(const TravellingEnd& from, runtime::ElementId element);
  [[noreturn]] void refuse_arrival(runtime::ElementId element, const char* what) const;
  void on_received(runtime::MessagePtr message);
  static void start_waiting_sends(ChannelEnd& end);

  void close_end(ChannelEnd& end, const std::shared_ptr<void>& chare);
  void fail_waiting_sends(ChannelEnd& end);
  // Tells the peer that this end sends no more. REQUIRES: the peer is known.
  void tell_closed(ChannelEnd& end);
  void answer_closed(EndAddress announced, std::uint32_t answers_round = 0);
  [[nodiscard]] chare::Chares& chares() const { return runtime_.model<chare::Chares>(); }
  void on_end_closed(runtime::MessagePtr message);
  // The peer sends no message from number `sent` on, a claim that is checked.
  void peer_closes(ChannelEnd& end, std::uint32_t sent);
  // Receives and drops what the peer of a closed end has sent, so that its sends are over.
  void drain(ChannelEnd& end);
  void end_is_over(ChannelEnd& end);
  // Ends the operations of all ends whose peers were on that PE.
  void on_loss(int pe);

  runtime::Runtime& runtime_;
  runtime::ModelRange range_;
  EndTable ends_;
  // Ends that are announced to chares which have not made theirs yet.
  struct EarlyEnd {
    EndAddress address;
    bool is_closed = false;  // and has been answered: the chare's end is never made
    std::uint32_t version = 0;
    std::uint32_t round = 0;  // see EndMoves::peer_round
    bool moves = false;       // the chare's end may not send yet
  };
  std::map<ChannelKey, EarlyEnd> early_;
  std::uint32_t first_counter_ = 0;
  FailedSends failed_sends_;
  CheckedMessages checked_messages_;
  bool is_checked_ = false;
  std::int64_t limit_bytes_;
  ClosedEnds closed_ends_;
  // Ends that have left with their chares, while handles of them may exist.
  std::vector<std::unique_ptr<ChannelEnd>> left_;
  void sweep_left();
  std::shared_ptr<void> alive_ = std::make_shared<char>();  // goes before the ends
};

}  // namespace weft::channel
