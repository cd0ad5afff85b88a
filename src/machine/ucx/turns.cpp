// The turns of a UcxMachine: what waits for a ring of a peer, progress, sleep, and close, which is the last turn.
#include <algorithm>
#include <chrono>
#include <vector>

#include "machine/ucx/handles/quiet.h"
#include "machine/ucx/ucx_machine.h"

namespace weft::machine::ucx {
namespace {

// While messages come through the queue, UCX is polled in one of so many rounds: a poll costs as much as a tenth of a
// small message's time.
constexpr int kQueueRoundsPerPoll = 16;
// How often a PE that sleeps while messages wait for room of a peer's ring looks whether there is some.
constexpr std::int64_t kRoomIntervalUs = 200;
// How long close() waits for the last sends to leave. If a peer is gone, close() takes this long.
constexpr auto kCloseLimit = std::chrono::milliseconds(200);

}  // namespace

QueueOutcome UcxMachine::wake_otherwise(int pe) {
  peer_memory().wake(pe);
  return QueueOutcome::kSent;
}

QueueOutcome UcxMachine::queue_when_full(int pe, AmId id, std::span<const std::byte> header,
                                         std::span<const std::byte> payload, base::Completion* completion) {
  using Sent = HostQueues::Sent;
  const bool is_free = queues_.send_copies(pe, [this](int sleeper) { peer_memory().wake(sleeper); });
  const Sent sent = is_free ? queues_.send(pe, id, header, payload) : Sent::kFull;
  if (sent == Sent::kToSleeper) return wake_otherwise(pe);
  if (sent != Sent::kFull) return QueueOutcome::kSent;
  queues_.wait_for_room(pe, id, header, payload, completion);
  attention().wanted = true;
  return QueueOutcome::kWaits;
}

bool UcxMachine::progress_with_queue() {
  queues_.progress([this](AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
    return active_messages_.deliver_local(id, header, payload);
  });
  if (--queue_rounds_left_ == 0) [[unlikely]] {
    queue_rounds_left_ = kQueueRoundsPerPoll;
    ucp_worker_progress(worker_.get());
  }
  if (attention().wanted) [[unlikely]]
    progress_rare(true);
  return true;
}

bool UcxMachine::progress() {
  if (queues_.has_message()) [[unlikely]]
    return progress_with_queue();
  const bool happened = ucp_worker_progress(worker_.get()) != 0;
  if (attention().wanted) [[unlikely]]
    return progress_rare(happened);
  return happened;
}

bool UcxMachine::progress_rare(bool happened) {
  happened |= tracker_.deliver_deferred();
  happened |= active_messages_.deliver_deferred(worker_.get());
  if (endpoints_.has_unclosed_failures()) close_failed_peers();
  if (queues_.has_waiting()) happened |= queues_.send_waiting([this](int pe) { peer_memory().wake(pe); });
  happened |= progress_shared_parts();
  attention().wanted = has_deferred() || queues_.has_waiting() || shared_parts_need_progress();
  return happened;
}

void UcxMachine::close_failed_peers() {
  endpoints_.close_failed();
  small_puts_.end_failed([&](int pe) { return endpoints_.has_failed(pe); },
                         [&](int pe, std::size_t size_bytes) {
                           return translate({TransportOperation::kPut, pe, size_bytes},
                                            UCS_ERR_CONNECTION_RESET);
                         });
}

bool UcxMachine::has_deferred() const {
  return tracker_.has_deferred() || active_messages_.has_deferred() || endpoints_.has_unclosed_failures();
}

void UcxMachine::wait(std::int64_t timeout_us) {
  if (attention().wanted && (has_deferred() || needs_polling() || !peer_memory().before_sleep())) return;
  if (!queues_.before_sleep()) return;
  // A receiver does not wake the senders to which it has given room.
  if (queues_.has_waiting())
    timeout_us = timeout_us < 0 ? kRoomIntervalUs : std::min(timeout_us, kRoomIntervalUs);
  worker_.wait(timeout_us, queues_.descriptor());
  queues_.after_sleep();
}

void UcxMachine::close() {
  if (is_closed()) return;
  // The last sends may still have to leave, over TCP and where a ring is full. A peer that does not take them costs the limit.
  const auto limit = std::chrono::steady_clock::now() + kCloseLimit;
  const auto progress_until = [&](auto done) {
    while (!done() && std::chrono::steady_clock::now() < limit) ucp_worker_progress(worker_.get());
  };
  queues_.close_receiver();
  progress_until([&] {
    queues_.send_waiting([this](int pe) { peer_memory().wake(pe); });
    return !queues_.has_waiting();
  });
  const std::vector<base::Completion*> unsent = queues_.take_waiting();
  begin_close();
  queues_.close();
  active_messages_.close(worker_.get());
  tracker_.cancel_all(worker_.get());

  ucp_request_param_t none{};
  const ucs_status_ptr_t flush = ucp_worker_flush_nbx(worker_.get(), &none);
  if (flush != nullptr && !UCS_PTR_IS_ERR(flush)) {
    progress_until([&] { return ucp_request_check_status(flush) != UCS_INPROGRESS; });
    ucp_request_free(flush);
  }
  tracker_.deliver_deferred();

  // The completions of the remaining operations are detached, and the worker is destroyed with its endpoints.
  // The endpoints are not closed one by one: a peer may be gone, so that would have to be by force, which leaves
  // callbacks behind that a peer must answer, and UCX corrupts the heap when it destroys these. An operation
  // that UCX did not end still uses its remote keys, so they are not destroyed before the worker.
  const bool is_idle = !tracker_.anything_in_flight();
  if (is_idle) regions_.destroy_remote_keys();
  const std::vector<base::Completion*> left = tracker_.take_all();
  // A worker whose endpoints were closed by force, because PEs were lost, is left too.
  if (endpoints_.has_lost() || (!is_idle && pes_on_host() < num_pes())) {
    // UCX over a network ends the process ("Fatal: unexpected error: Endpoint timeout") when it destroys a
    // worker with operations in flight, even after forced closes. The PE is about to end, so the worker is left
    // to the exit of the process.
    worker_.abandon();
    context_.abandon();
  } else {
    QuietUcx quiet;
    worker_.destroy();
    regions_.remove_all(context_.get());
    context_.destroy();
  }
  for (const auto* completions : {&left, &unsent}) {
    for (base::Completion* completion : *completions)
      completion->function(completion, closed_machine(pe()), 0);
  }
  small_puts_.close(closed_machine(pe()));
  end_close();
}

}  // namespace weft::machine::ucx
