#include "runtime/message/flow_control.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

#include "base/available_memory.h"
#include "base/format.h"
#include "runtime/message/attached.h"
#include "runtime/message/handlers.h"

namespace weft::runtime {

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// The first watermark: all peers of a PE together may have kAllFirstBytes waiting there, and each at least 1 MiB.
constexpr std::int64_t kFirstBytes = 32 * kMiB;
constexpr std::int64_t kAllFirstBytes = 512 * kMiB;
constexpr std::int64_t kLeastFirstBytes = kMiB;
constexpr std::int64_t kLeastThirdBytes = 256 * kMiB;
// A PE's part of the host's memory that one peer may fill before its calls throw.
constexpr std::int64_t kThirdShare = 4;

// A credit is worth this part of the first watermark.
constexpr std::int64_t kCreditShare = 8;
// While the peer waits, the next kQuickCredits credits are worth this part of that.
constexpr std::int64_t kQuickShare = 16;
constexpr int kQuickCredits = 16;
// After a cycle was found, a call looks again when this part of the way to the third watermark is done.
constexpr std::int64_t kPassShare = 64;
// The queue of a PE is counted when this many calls to the PE have allocated fresh blocks.
constexpr std::size_t kBlocksPerCount = 4096;

// A peer's claim of bytes that it has sent or handled must be below this limit, so that differences do not overflow.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

// The totals since the start, because messages between two PEs may arrive in any order.
struct Credit {
  std::int64_t handled_bytes = 0;  // of what the receiver of the credit has sent
  std::uint64_t handled = 0;
  std::int64_t sent_bytes = 0;  // to the receiver of the credit
};

struct Probe {
  std::int32_t initiator = 0;
  std::int32_t hops = 0;
  std::uint64_t number = 0;
};

}  // namespace

Watermarks Watermarks::for_job(int num_pes, int local_pes) {
  Watermarks watermarks;
  watermarks.first_bytes = std::clamp(kAllFirstBytes / std::max(num_pes, 1), kLeastFirstBytes, kFirstBytes);
  watermarks.second_bytes = 2 * watermarks.first_bytes;
  const auto memory_bytes = static_cast<std::int64_t>(base::available_memory_bytes());
  watermarks.third_bytes = std::max(kLeastThirdBytes, memory_bytes / (kThirdShare * std::max(local_pes, 1)));
  return watermarks;
}

FlowControl::FlowControl(Scheduler& scheduler, Send send, const Watermarks& watermarks)
    : scheduler_(scheduler),
      send_(send),
      watermarks_(watermarks),
      credit_bytes_(watermarks.first_bytes / kCreditShare),
      quick_credit_bytes_(credit_bytes_ / kQuickShare),
      peers_(static_cast<std::size_t>(scheduler.num_pes()),
             FlowPeer{.window = {{watermarks.first_bytes}, OwedCredit(credit_bytes_)}}),
      totals_(peers_.size()) {}

std::int64_t FlowControl::cost_of_buffers(const Attached& attached, Counted counted) {
  std::size_t sum_bytes = 0;
  for (const Attachment& one : attached.buffers) {
    const std::size_t size_bytes = one.buffer().size_bytes;
    if (counted == Counted::kAll || size_bytes < machine::kLeastHeldBytes) sum_bytes += size_bytes;
  }
  return static_cast<std::int64_t>(sum_bytes);
}

std::int64_t FlowControl::outstanding_bytes(int pe) {
  return watermarks_.first_bytes - room(pe).bytes - totals(pe).waiting_here_bytes;
}

// --- The sender

bool FlowControl::admit(int pe, std::int64_t cost_bytes) {
  const auto before_bytes = [&] { return watermarks_.first_bytes - room(pe).bytes - cost_bytes; };
  if (before_bytes() <= watermarks_.second_bytes) return true;
  Totals& with = totals(pe);
  if (pe != scheduler_.pe() && before_bytes() > with.passes_until_bytes && scheduler_.may_progress() &&
      !scheduler_.must_end()) {
    // A wait cannot shorten this PE's own queue, which is handled after the caller returns. Only bytes outstanding at the peer count.
    if (outstanding_bytes(pe) - cost_bytes > watermarks_.second_bytes) wait(pe, cost_bytes);
  }
  const bool may_send = !scheduler_.must_end();
  if (may_send && before_bytes() <= watermarks_.third_bytes) return true;
  const std::int64_t bytes = before_bytes();
  peer(pe).uncharge(cost_bytes);
  if (may_send) refuse(pe, bytes);
  return false;
}

bool FlowControl::await_room(int pe, std::int64_t cost_bytes) {
  if (room(pe).has(cost_bytes)) return true;
  peer(pe).charge(cost_bytes);
  if (!admit(pe, cost_bytes)) return false;
  peer(pe).uncharge(cost_bytes);
  return true;
}

bool FlowControl::admit_broadcast(const Message& message) {
  for (int pe = 0; pe < scheduler_.num_pes(); ++pe) {
    if (room(pe).has(0)) continue;
    bool is_admitted = false;
    try {
      is_admitted = admit(pe, cost_of(message));
    } catch (...) {
      uncharge_except(pe, message);
      throw;
    }
    if (is_admitted) continue;
    uncharge_except(pe, message);
    return false;
  }
  return true;
}

void FlowControl::uncharge_except(int one, const Message& message) {
  for (int pe = 0; pe < scheduler_.num_pes(); ++pe) {
    if (pe == one) continue;
    peer(pe).uncharge(cost_of(message));
  }
}

void FlowControl::wait(int pe, std::int64_t cost_bytes) {
  const auto began = std::chrono::steady_clock::now();
  blocked_on_ = pe;
  // Well below the watermark, because each wait costs both PEs a change of pace.
  blocked_until_bytes_ = watermarks_.second_bytes - watermarks_.first_bytes / 2 + cost_bytes;
  is_cycle_ = false;
  send_probe(pe, scheduler_.pe(), ++wait_number_, 0);
  scheduler_.progress_until(
      [](void* context) {
        auto& self = *static_cast<FlowControl*>(context);
        return self.is_cycle_ || self.outstanding_bytes(self.blocked_on_) <= self.blocked_until_bytes_;
      },
      this);
  blocked_on_ = -1;
  const std::int64_t bytes = watermarks_.first_bytes - room(pe).bytes;
  if (is_cycle_) {
    totals(pe).passes_until_bytes = bytes + (watermarks_.third_bytes - watermarks_.second_bytes) / kPassShare;
  }
  ++num_waits_;
  waited_ += std::chrono::steady_clock::now() - began;
}

void FlowControl::refuse(int pe, std::int64_t bytes) {
  const std::uint64_t messages = peer(pe).sent - totals(pe).credited;
  std::string why = "the scheduler does not run the caller";
  if (scheduler_.may_progress()) {
    why = totals(pe).waiting_here_bytes > watermarks_.second_bytes / 2
              ? "these messages wait for the caller to return"
              : "the PEs wait for one another";
  }
  const char* const kind = has_parts_ ? "messages and aggregated calls" : "messages";
  std::string what;
  if (pe == scheduler_.pe()) {
    what = base::format("{} {} ({} MiB) wait in the queue of this PE, {}", messages, kind, bytes / kMiB, pe);
  } else {
    what = base::format(
        "PE {} has sent {} {} to PE {} that PE {} has not handled ({} MiB, with {} MiB of messages "
        "from there that wait here), and waiting cannot help: {}",
        scheduler_.pe(), messages, kind, pe, pe, bytes / kMiB, totals(pe).waiting_here_bytes / kMiB, why);
  }
  throw base::Error(
      base::StatusCode::kOutOfMemory,
      base::format("{}; the limit is {} MiB. Messages are handled when the caller returns or waits: await "
                   "now and then in a loop of calls (Python: await proxy.method(...); C++: co_await "
                   "weft::room(runtime))",
                   what, watermarks_.third_bytes / kMiB));
}

void FlowControl::copies_made(int pe, std::int64_t bytes) {
  totals(pe).copies_bytes += bytes;
  room(pe).bytes -= bytes;
}

void FlowControl::copies_sent(int pe, std::int64_t bytes) {
  totals(pe).copies_bytes -= bytes;
  room(pe).bytes += bytes;
  end_waits();
}

void FlowControl::lose(int pe) {
  totals(pe).is_lost = true;
  room(pe).bytes = kMostBytes;
  end_waits();
}

void FlowControl::not_sent(int pe, Message& message) {
  // The charge of a broadcast is its root's.
  const Envelope& envelope = message.envelope();
  if ((envelope.flags & (kControlFlag | kBroadcastFlag)) != 0) return;
  peer(pe).uncharge(cost_of(message) + std::exchange(message.attached().flow_bytes, 0));
  end_waits();
}

void FlowControl::expect_queue_room(std::size_t block_bytes) {
  if (++fresh_blocks_ < std::max(kBlocksPerCount, queued_ / 4)) return;
  fresh_blocks_ = 0;
  queued_ = scheduler_.num_queued();
  if (static_cast<std::int64_t>(queued_ * block_bytes) <= watermarks_.third_bytes) return;
  fresh_blocks_ = queued_;  // the next call looks again
  throw base::Error(
      base::StatusCode::kOutOfMemory,
      base::format("{} calls and messages (about {} MiB) wait in the queue of this PE, {}; the limit is {} "
                   "MiB. They are handled when the caller returns or waits: await now and then in a loop of "
                   "calls (co_await weft::yield_now(runtime))",
                   queued_, queued_ * block_bytes / kMiB, scheduler_.pe(), watermarks_.third_bytes / kMiB));
}

// --- The receiver

// Moves what was handled since the last credit to the totals.
void FlowControl::settle(int pe) { totals(pe).handled_bytes += unreported_bytes(pe); }

void FlowControl::pay(int pe) {
  Totals& with = totals(pe);
  settle(pe);
  const bool is_wanted = with.quick_credits > 0;
  if (is_wanted) --with.quick_credits;
  peer(pe).window.owed.restart(credit_bytes(pe));
  if (pe == scheduler_.pe()) return credited(pe, with.handled_bytes, peer(pe).handled);
  set_waiting_here(pe);
  // Other PEs may have stopped, except one that waits inside a call.
  if (scheduler_.exiting() && !is_wanted) return;
  const Credit credit{with.handled_bytes, peer(pe).handled,
                      with.credited_bytes + outstanding_bytes(pe) - with.copies_bytes};
  MessagePtr message = Message::pack(scheduler_, kFlowCreditHandler, credit);
  message->envelope().flags |= kControlFlag | kUrgentFlag;
  send_(scheduler_, pe, std::move(message));
}

void FlowControl::on_credit(MessagePtr message) {
  const auto pe = static_cast<int>(message->envelope().source_pe);
  Credit credit;
  message->unpacker() | credit;
  if (credit.handled_bytes < 0 || credit.sent_bytes < 0 || credit.sent_bytes > kMostBytes) {
    return fail_claim(pe, credit.handled_bytes, credit.handled);
  }
  if (totals(pe).is_lost) return;                    // its room is no account any more
  if (credit.handled < totals(pe).credited) return;  // a later one has overtaken it
  totals(pe).peer_sent_bytes = credit.sent_bytes;
  set_waiting_here(pe);
  credited(pe, credit.handled_bytes, credit.handled);
}

void FlowControl::fail_claim(int pe, std::int64_t all_bytes, std::uint64_t all_messages) {
  scheduler_.fail(base::format(
      "PE {} claims to have handled {} messages of {} bytes from PE {}, which does not fit what was "
      "sent; do all PEs run the same program?",
      pe, all_messages, all_bytes, scheduler_.pe()));
}

void FlowControl::credited(int pe, std::int64_t all_bytes, std::uint64_t all_messages) {
  Totals& with = totals(pe);
  // Both are not negative. A total that has shrunk becomes a claim beyond all that is outstanding.
  const auto bytes = static_cast<std::uint64_t>(all_bytes - with.credited_bytes);
  if (all_messages > peer(pe).sent || !room(pe).give_back(bytes, outstanding_bytes(pe) - with.copies_bytes)) {
    return fail_claim(pe, all_bytes, all_messages);
  }
  with.credited_bytes = all_bytes;
  with.credited = all_messages;
  if (watermarks_.first_bytes - room(pe).bytes <= watermarks_.second_bytes) with.passes_until_bytes = 0;
  end_waits();
}

// Bytes that the peer has sent and that wait in this PE's queue are part of what its answers cost this PE.
void FlowControl::set_waiting_here(int pe) {
  Totals& with = totals(pe);
  const std::int64_t waiting_bytes = std::max<std::int64_t>(0, with.peer_sent_bytes - with.handled_bytes);
  room(pe).bytes += with.waiting_here_bytes - waiting_bytes;
  with.waiting_here_bytes = waiting_bytes;
  end_waits();
}

// --- Waits

bool FlowControl::has_room(int pe) const {
  if (pe >= 0) return peers_[static_cast<std::size_t>(pe)].window.room.has(0);
  return std::ranges::all_of(peers_, [](const FlowPeer& one) { return one.window.room.has(0); });
}

void FlowControl::when_room(int pe, Work* work) {
  if (has_room(pe)) {
    scheduler_.post_for_next_turn(work);
  } else {
    waiters_.push_back({pe, work});
  }
}

void FlowControl::forget_waiter(Work* work) {
  std::erase_if(waiters_, [work](const Waiter& waiter) { return waiter.work == work; });
}

void FlowControl::end_waits() {
  std::erase_if(waiters_, [this](const Waiter& waiter) {
    if (!has_room(waiter.pe)) return false;
    scheduler_.post(waiter.work);
    return true;
  });
}

void FlowControl::send_probe(int pe, int initiator, std::uint64_t number, int hops) {
  MessagePtr message = Message::pack(scheduler_, kFlowProbeHandler, Probe{initiator, hops, number});
  message->envelope().flags |= kControlFlag | kUrgentFlag;
  send_(scheduler_, pe, std::move(message));
}

void FlowControl::on_probe(MessagePtr message) {
  const auto pe = static_cast<int>(message->envelope().source_pe);
  Probe probe;
  message->unpacker() | probe;
  settle(pe);
  totals(pe).quick_credits = kQuickCredits;
  peer(pe).window.owed.restart(credit_bytes(pe));
  pay(pe);
  if (probe.initiator == scheduler_.pe()) {
    is_cycle_ |= blocked_on_ >= 0 && probe.number == wait_number_;
  } else if (blocked_on_ >= 0 && probe.hops < scheduler_.num_pes()) {
    send_probe(blocked_on_, probe.initiator, probe.number, probe.hops + 1);
  }
}

void FlowControl::list_waits(WaitList& waits) const {
  for (int pe = -1; pe < scheduler_.num_pes(); ++pe) {
    const auto calls = std::ranges::count(waiters_, pe, &Waiter::pe) + (pe >= 0 && blocked_on_ == pe ? 1 : 0);
    if (calls == 0) continue;
    std::string what = base::format("{} call{} for ", calls, calls == 1 ? " waits" : "s wait");
    if (pe < 0) {
      what += "all PEs: too many messages are on their way to one of them";
    } else {
      const auto at = static_cast<std::size_t>(pe);
      what += base::format("PE {}, which has handled {} of {} messages of this PE", pe, totals_[at].credited,
                           peers_[at].sent);
    }
    waits.add({.who = {{}, "flow control"}, .what = what});
  }
}

std::vector<std::string> FlowControl::report() const {
  if (num_waits_ == 0) return {};
  return {base::format("calls waited {} times, {:.3f} s in all, for peers to handle earlier ones", num_waits_,
                       std::chrono::duration<double>(waited_).count())};
}

}  // namespace weft::runtime
