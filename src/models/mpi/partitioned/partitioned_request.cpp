#include "models/mpi/partitioned/partitioned_request.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/format.h"
#include "base/refuse_claim.h"
#include "models/mpi/communicators/communicator.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

namespace {

// Partitions are combined as long as their message travels in one block: so small, its size hardly counts.
constexpr auto kMostCombinedBytes = static_cast<std::int64_t>(PointToPoint::kEagerBytes);

Partitions partitions_of(const PartitionedCall& call) {
  const auto all_bytes = static_cast<std::int64_t>(call.view.size_bytes);
  return {.number = call.num_partitions,
          .size_bytes = call.num_partitions == 0 ? 0 : all_bytes / call.num_partitions,
          .granule_bytes = call.view.is_dense() ? 1 : all_bytes / call.view.count};
}

}  // namespace

PartitionedRequest::PartitionedRequest(PartitionedCall call)
    : Request(Type::kPartitioned), call_(std::move(call)), partitions_(partitions_of(call_)) {}

void PartitionedRequest::find_peer() {
  if (!call_.no_process)
    scheduler().spawn(agree(Ref<PartitionedRequest>(*this)), "a partitioned message of MPI");
}

void PartitionedRequest::refuse() const {
  base::refuse_claim(base::format("rank {} describes a partitioned message that cannot be", call_.world_peer),
                     "do all PEs run the same version of Weft?");
}

void PartitionedRequest::start() {
  activate();
  if (call_.no_process) return complete(is_send() ? Outcome() : Outcome::of_no_process());
  prepare();
  if (failure_ != 0) return complete({.error = failure_});
  if (cut_) begin();
}

DataView PartitionedRequest::view_of(std::size_t message) const {
  if (cut_->num_messages() == 1) return call_.view;
  const std::int64_t first_byte = cut_->first_byte(message);
  const std::int64_t size_bytes = cut_->end_byte(message) - first_byte;
  DataView view = call_.view;
  view.size_bytes = static_cast<std::size_t>(size_bytes);
  if (view.is_dense()) {
    view.data += first_byte;
  } else {
    view.data += first_byte / partitions_.granule_bytes * call_.extent_bytes;
    view.count = size_bytes / partitions_.granule_bytes;
  }
  return view;
}

void PartitionedRequest::use_cut(const PartitionCut& cut, std::uint64_t context) {
  if (cut.num_messages() >= static_cast<std::size_t>(std::numeric_limits<int>::max())) refuse();
  cut_ = cut;
  for (std::size_t i = 0; i < cut_->num_messages(); ++i)
    messages_.push_back(make_message(context, static_cast<int>(i) + kReplyTag + 1, view_of(i)));
  if (is_under_way()) begin();
}

void PartitionedRequest::fail(int error_class) {
  failure_ = error_class;
  if (is_under_way()) complete({.error = error_class});
}

void PartitionedRequest::finish() {
  const bool all_complete = std::all_of(messages_.begin(), messages_.end(),
                                        [](const Ref<Request>& message) { return message->is_complete(); });
  if (all_complete) return complete_with_messages();
  scheduler().spawn(await_messages(Ref<PartitionedRequest>(*this)), "a partitioned message of MPI");
}

// A parameter, so that the frame holds the reference.
runtime::Task<> PartitionedRequest::await_messages(Ref<PartitionedRequest> self) {
  for (const Ref<Request>& message : self->messages_) co_await Completed(*message, self->scheduler());
  self->complete_with_messages();
}

void PartitionedRequest::complete_with_messages() {
  Outcome outcome;
  if (!is_send()) outcome = {.source = call_.peer, .tag = call_.tag};
  for (const Ref<Request>& message : messages_) {
    const Outcome& part = message->outcome();
    if (!is_send()) outcome.size_bytes += part.size_bytes;
    outcome.cancelled |= part.cancelled;
    if (outcome.error == 0) outcome.error = part.error;
  }
  complete(outcome);
}

// --- Sending

runtime::Task<> PartitionedSend::agree([[maybe_unused]] Ref<PartitionedRequest> self) {
  const std::uint64_t context =
      context_of(engine().new_context_base_with(call().world_peer), ContextUse::kMessages);
  Introduction own{context, partitions()};
  Introduction theirs;
  const SendAddress to{call().context, call().rank, call().tag, call().world_peer};
  const auto received = engine().receive({context, call().peer, kReplyTag},
                                         DataView::of_bytes(&theirs, sizeof theirs), call().world_peer);
  const auto sent = engine().send(to, DataView::of_bytes(&own, sizeof own), SendMode::kStandard);
  const Outcome outcome = co_await Completed(*received, scheduler());
  if (outcome.cancelled) co_return;  // the engine closes
  if (outcome.error != 0) co_return fail(outcome.error);
  if (outcome.size_bytes != sizeof theirs || !theirs.partitions.checked_bytes()) refuse();
  use_cut(PartitionCut(partitions(), theirs.partitions, kMostCombinedBytes), context);
  co_await Completed(*sent, scheduler());
}

Ref<Request> PartitionedSend::make_message(std::uint64_t context, int tag, const DataView& view) {
  return as_request(
      engine().make_send({context, call().rank, tag, call().world_peer}, view, SendMode::kStandard));
}

void PartitionedSend::prepare() {
  ready_.assign(static_cast<std::size_t>(num_partitions()), false);
  num_started_ = 0;
}

void PartitionedSend::begin() {
  num_left_.assign(cut()->num_messages(), 0);
  for (std::size_t i = 0; i < num_left_.size(); ++i) {
    const auto first = ready_.begin() + cut()->first_partition(i);
    num_left_[i] = std::count(first, ready_.begin() + cut()->end_partition(i), false);
  }
  for (std::size_t i = 0; i < num_left_.size(); ++i)
    if (num_left_[i] == 0) start_message(i);
}

void PartitionedSend::make_ready(std::int64_t partition) {
  ready_[static_cast<std::size_t>(partition)] = true;
  if (!cut()) return;
  const std::size_t number = cut()->message_of(partition);
  if (--num_left_[number] == 0) start_message(number);
}

void PartitionedSend::start_message(std::size_t number) {
  message(number).start();
  if (++num_started_ == num_left_.size()) finish();
}

// --- Receiving

runtime::Task<> PartitionedReceive::agree([[maybe_unused]] Ref<PartitionedRequest> self) {
  Introduction theirs;
  const auto received = engine().receive({call().context, call().peer, call().tag},
                                         DataView::of_bytes(&theirs, sizeof theirs), call().world_peer);
  const Outcome outcome = co_await Completed(*received, scheduler());
  if (outcome.cancelled) co_return;  // the engine closes
  if (outcome.error != 0) co_return fail(outcome.error);
  if (outcome.size_bytes != sizeof theirs || !theirs.partitions.checked_bytes() ||
      !engine().may_have_made(call().world_peer, base_of_context(theirs.context)) ||
      theirs.context != context_of(base_of_context(theirs.context), ContextUse::kMessages))
    refuse();
  Introduction own{theirs.context, partitions()};
  const SendAddress to{theirs.context, call().rank, kReplyTag, call().world_peer};
  const auto sent = engine().send(to, DataView::of_bytes(&own, sizeof own), SendMode::kStandard);
  use_cut(PartitionCut(theirs.partitions, partitions(), kMostCombinedBytes), theirs.context);
  co_await Completed(*sent, scheduler());
}

Ref<Request> PartitionedReceive::make_message(std::uint64_t context, int tag, const DataView& view) {
  return as_request(engine().make_receive({context, call().peer, tag}, view, call().world_peer));
}

void PartitionedReceive::begin() {
  for (std::size_t i = 0; i < cut()->num_messages(); ++i) message(i).start();
  finish();
}

bool PartitionedReceive::has_arrived(std::int64_t partition) const {
  if (!is_under_way()) return true;
  if (!cut()) return false;
  const PartitionCut::Range range = cut()->messages_of(partition);
  for (std::size_t i = range.first; i < range.end; ++i)
    if (!message(i).is_complete()) return false;
  return true;
}

}  // namespace weft::mpi
