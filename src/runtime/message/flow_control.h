// Flow control of messages: a sender cannot fill the memory of a slow receiver, nor its own.
//
// Each PE counts, for each peer, the bytes that it has sent and that the peer has not begun to handle. All messages
// count except the runtime's control messages. Only calls of user code wait (Messenger::send_call), see Watermarks.
//
// The receiver reports what it has handled by credit messages, one for each kCreditShare of the first watermark. Credits and
// probes are urgent messages, which are handled inside progress(). A PE that waits inside a call therefore gets them.
//
// A PE waits inside a call for one peer at a time. It sends that peer a probe, and a PE that waits itself passes the
// probe on. If the probe returns, the PEs of the cycle wait for one another: the wait ends, and the call passes. Calls
// may then pass until the third watermark.
//
// Private to the message layer. Threads: the PE's. docs/decisions/flow-control.md has the reasons.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/runtime/message.h"
#include "weft/runtime/scheduler.h"
#include "weft/runtime/wait_list.h"
#include "weft/runtime/watermarks.h"

#include "machine/message_sizes.h"
#include "runtime/message/credit_window.h"

namespace weft::runtime {

// The part of a peer's state that each message changes. The window is the first watermark.
struct FlowPeer {
  CreditWindow window;
  std::uint64_t sent = 0;     // messages to the peer
  std::uint64_t handled = 0;  // messages of the peer

  // Charges a message to the peer. Returns whether there was room for all of it; it is charged either way.
  bool charge(std::int64_t cost_bytes) {
    ++sent;
    return window.room.take(cost_bytes);
  }
  void uncharge(std::int64_t cost_bytes) {
    --sent;
    window.room.bytes += cost_bytes;
  }
};

class FlowControl {
 public:
  static constexpr std::int64_t kMessageBytes = machine::kSentMessageBytes;

  // Sends a control message, see Messenger::send().
  using Send = void (*)(Scheduler& scheduler, int pe, MessagePtr message);
  FlowControl(Scheduler& scheduler, Send send, const Watermarks& watermarks);
  FlowControl(const FlowControl&) = delete;
  FlowControl& operator=(const FlowControl&) = delete;

  FlowPeer* peers() { return peers_.data(); }

  static std::int64_t cost_of(const Message& message) {
    return static_cast<std::int64_t>(message.payload_bytes()) + kMessageBytes;
  }
  // Which buffers count. Large ones stay at their sender until they are fetched, where copies_made() counts them. Those of
  // a broadcast land on arrival, and those of messages to the own PE are copied: all of them count.
  enum class Counted : bool { kBelowFetched, kAll };
  static Counted counted_of(const Envelope& envelope, bool is_to_own_pe) {
    return is_to_own_pe || (envelope.flags & kBroadcastFlag) != 0 ? Counted::kAll : Counted::kBelowFetched;
  }
  // The bytes that the buffers of a message count. The number depends on their sizes alone, so that both ends count the same.
  static std::int64_t cost_of_buffers(const Attached& attached, Counted counted);

  // For a message of user code that costs as much, has been charged and left no room. Returns whether to send it: false if the
  // job ends. Waits, or throws Error; then the message is not charged.
  bool admit(int pe, std::int64_t cost_bytes);
  // As admit(), for a broadcast: for each PE in turn.
  bool admit_broadcast(const Message& message);
  // For a message of user code that is not charged yet: as admit(), if there is no room. It is not charged.
  [[nodiscard]] bool await_room(int pe, std::int64_t cost_bytes);
  // See Messenger.
  void charge_part(int pe, std::int64_t bytes) {
    has_parts_ = true;
    peer(pe).charge(bytes);
  }
  // Charges the copies of a message's buffers, which are at this PE until `pe` has fetched them.
  void copies_made(int pe, std::int64_t bytes);
  void copies_sent(int pe, std::int64_t bytes);
  // Nothing of the message has left this PE.
  void not_sent(int pe, Message& message);
  // PE `pe` is lost: it handles no more, and no call waits for it.
  void lose(int pe);
  // Reports to `pe` what has been handled.
  void pay(int pe);

  // See Messenger.
  bool has_room(int pe) const;
  std::int64_t room_bytes(int pe) const { return peers_[static_cast<std::size_t>(pe)].window.room.bytes; }
  void when_room(int pe, Work* work);
  void forget_waiter(Work* work);
  bool has_waiters() const { return !waiters_.empty(); }
  // The urgent handlers of kFlowCreditHandler and kFlowProbeHandler.
  void on_credit(MessagePtr message);
  void on_probe(MessagePtr message);
  // Throws Error if too much work waits in this PE's queue. Called for each block that a call to this PE allocates.
  void expect_queue_room(std::size_t block_bytes);
  // Nothing that waits is posted any more.
  void close() { waiters_.clear(); }

  // Adds the calls that wait for room, by PE.
  void list_waits(WaitList& waits) const;
  // How long calls have waited. Empty if none has.
  std::vector<std::string> report() const;

  // For tests. When all is handled and no credit is on its way, the charges of a PE for a peer are what the peer has not
  // reported to it.
  std::int64_t charged_bytes(int pe) { return outstanding_bytes(pe) - totals(pe).copies_bytes; }
  std::int64_t unreported_bytes(int pe) { return peer(pe).window.owed.unreported_bytes(credit_bytes(pe)); }
  std::int64_t copies_bytes(int pe) { return totals(pe).copies_bytes; }

 private:
  struct Totals {
    std::int64_t credited_bytes = 0;      // of what was sent to the peer
    std::uint64_t credited = 0;           // in messages
    std::int64_t handled_bytes = 0;       // of what the peer has sent
    std::int64_t peer_sent_bytes = 0;     // as the peer's last credit says
    std::int64_t waiting_here_bytes = 0;  // of that, what waits in this PE's queue
    std::int64_t copies_bytes = 0;
    std::int64_t passes_until_bytes = 0;  // after a cycle was found: calls pass up to here
    int quick_credits = 0;                // credits that are worth less, because the peer waits
    bool is_lost = false;                 // see lose()
  };
  struct Waiter {
    int pe;
    Work* work;
  };

  Totals& totals(int pe) { return totals_[static_cast<std::size_t>(pe)]; }
  FlowPeer& peer(int pe) { return peers_[static_cast<std::size_t>(pe)]; }
  // The bytes that the peer must handle before its room grows.
  std::int64_t outstanding_bytes(int pe);
  SendRoom& room(int pe) { return peer(pe).window.room; }
  std::int64_t credit_bytes(int pe) {
    return totals(pe).quick_credits > 0 ? quick_credit_bytes_ : credit_bytes_;
  }
  void settle(int pe);
  void credited(int pe, std::int64_t all_bytes, std::uint64_t all_messages);
  void fail_claim(int pe, std::int64_t all_bytes, std::uint64_t all_messages);
  void set_waiting_here(int pe);
  void uncharge_except(int one, const Message& message);
  void wait(int pe, std::int64_t cost_bytes);
  void send_probe(int pe, int initiator, std::uint64_t number, int hops);
  void end_waits();
  [[noreturn]] void refuse(int pe, std::int64_t bytes);

  Scheduler& scheduler_;
  Send send_;
  Watermarks watermarks_;
  std::int64_t credit_bytes_;
  std::int64_t quick_credit_bytes_;
  std::vector<FlowPeer> peers_;
  std::vector<Totals> totals_;
  std::vector<Waiter> waiters_;
  int blocked_on_ = -1;  // the peer for which a call waits
  std::int64_t blocked_until_bytes_ = 0;
  std::uint64_t wait_number_ = 0;
  bool is_cycle_ = false;
  bool has_parts_ = false;        // some of what is counted are no messages
  std::size_t fresh_blocks_ = 0;  // since the queue was counted
  std::size_t queued_ = 0;        // when the queue was counted
  std::uint64_t num_waits_ = 0;
  std::chrono::steady_clock::duration waited_{};
};

}  // namespace weft::runtime
