#include "machine/staging/staging.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace weft::machine {

using base::Completion;
using base::Status;
using base::StatusCode;
using memory::Buffer;
using memory::ConstBuffer;

namespace {

Status out_of_host_memory(std::size_t size_bytes) {
  return {StatusCode::kOutOfMemory,
          base::format(
              "no host memory for the {} bytes that a staged transfer passes through; send in smaller parts",
              size_bytes)};
}

}  // namespace

Staging::Staging(TransportMachine& machine, memory::Memory& memory, StagingMode mode, TransferCounts& counts)
    : machine_(machine),
      memory_(memory),
      counts_(counts),
      mode_(mode),
      waits_{machine.attention()},
      bounces_(memory) {}

Staging::~Staging() = default;

Status Staging::open() {
  for (int kind = 0; kind < memory::kNumKinds; ++kind) {
    const auto name = static_cast<memory::Kind>(kind);
    if (name != memory::Kind::kHost && mode_ == StagingMode::kHost) continue;
    if (machine_.addresses(name)) addressed_kinds_ |= 1u << kind;
  }
  return machine_.transport_set_am_handler(kStagingAmId, &Staging::on_message, this);
}

Status Staging::closed() const {
  return {StatusCode::kClosed,
          base::format("the machine of PE {} was closed during the transfer", machine_.pe())};
}

// --- the life of a transfer ---

StagedTransfer& Staging::make(Completion* user) {
  auto transfer = std::make_unique<StagedTransfer>(waits_);
  transfer->function = &Staging::on_step;
  transfer->staging = this;
  transfer->user = user;
  transfer->index = live_.size();
  if (user != nullptr) {
    user->in_flight = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(transfer.get()) | kOwned);
  }
  live_.push_back(std::move(transfer));
  return *live_.back();
}

void Staging::on_step(Completion* self, Status status, std::size_t size_bytes) {
  auto& transfer = *static_cast<StagedTransfer*>(self);
  transfer.staging->resume(transfer, std::move(status), size_bytes);
}

void Staging::resume(StagedTransfer& transfer, Status status, std::size_t size_bytes) {
  if (transfer.phase == StagingPhase::kMemory) --waits_.in_memory;
  transfer.phase = StagingPhase::kRunning;
  transfer.status = std::move(status);
  transfer.size_bytes = size_bytes;
  transfer.waiting.resume();
}

void Staging::finish(StagedTransfer& transfer, Status status, std::size_t size_bytes) {
  transfer.phase = StagingPhase::kFinished;
  Finished finished{&transfer, std::move(status), size_bytes};
  if (starting_ > 0) {
    finished_.push_back(std::move(finished));
    machine_.attention().wanted = true;
  } else {
    deliver(finished);
  }
}

void Staging::deliver(const Finished& finished) {
  StagedTransfer& transfer = *finished.transfer;
  Completion* user = transfer.user;
  live_.back()->index = transfer.index;
  std::swap(live_[transfer.index], live_.back());
  live_.pop_back();
  if (user == nullptr) return;
  user->in_flight = nullptr;
  user->function(user, finished.status, finished.size_bytes);
}

StagedStep Staging::in_memory(StagedTransfer& transfer, Status started) {
  return {transfer, StagingPhase::kMemory, std::move(started), 0};
}

StagedStep Staging::in_machine(StagedTransfer& transfer, Status started, std::size_t size_bytes) {
  return {transfer, StagingPhase::kMachine, std::move(started), size_bytes};
}

StagedStep Staging::for_turn(StagedTransfer& transfer) {
  return {transfer, StagingPhase::kTurn, Status::pending(), 0};
}

StagedStep Staging::from_peer(StagedTransfer& transfer) {
  return {transfer, StagingPhase::kPeer, std::exchange(transfer.answer_status, Status::pending()), 0};
}

void Staging::answered(StagedTransfer& transfer, Status status) {
  if (transfer.phase == StagingPhase::kPeer) return resume(transfer, std::move(status), 0);
  transfer.answer_status = std::move(status);
}

// --- buffers ---

Status Staging::prepare_send(StagedTransfer& transfer, const ConstBuffer& local) {
  if (local.place.is_host() || local.size_bytes == 0) return {};
  if (passes(local)) {
    return local.stream == nullptr ? Status()
                                   : memory_.when_stream_done(local.place, local.stream, &transfer);
  }
  transfer.bounce = bounces_.acquire(local.size_bytes, local.place);
  if (transfer.bounce.data() == nullptr) return out_of_host_memory(local.size_bytes);
  return memory_.copy({transfer.bounce.data(), local.size_bytes, {}, nullptr}, local, &transfer);
}

void Staging::count_receive(const StagedTransfer& transfer, memory::Place place, std::size_t size_bytes) {
  if (size_bytes == 0 || (addresses(place) && transfer.bounce.data() == nullptr)) return;
  counts_.add(TransferType::kReceive, TransferPath::kStaged, place.kind, size_bytes);
  if (counts_.is_observed()) [[unlikely]] {
    counts_.observe(TransferType::kReceive, TransferPath::kStaged, place.kind, size_bytes, Status::pending(),
                    transfer.user);
  }
}

Status Staging::prepare_receive(StagedTransfer& transfer, const Buffer& local) {
  if (local.place.is_host() || local.size_bytes == 0) return {};
  if (passes(local)) {
    return local.stream == nullptr ? Status()
                                   : memory_.when_stream_done(local.place, local.stream, &transfer);
  }
  transfer.bounce = bounces_.acquire(local.size_bytes, local.place);
  return transfer.bounce.data() != nullptr ? Status() : out_of_host_memory(local.size_bytes);
}

Status Staging::land(StagedTransfer& transfer, const Buffer& local, std::size_t size_bytes) {
  if (transfer.bounce.data() == nullptr || size_bytes == 0) return {};
  return memory_.copy({local.data, size_bytes, local.place, local.stream},
                      ConstBuffer(transfer.bounce.data(), size_bytes), &transfer);
}

// --- tagged messages ---

Status Staging::tag_send(int pe, Tag tag, const ConstBuffer& buffer, Completion* completion) {
  const bool is_first = !held_sends_.contains({pe, tag});
  if (is_first && (takes_as_is(buffer) || buffer.size_bytes == 0)) {
    return machine_.transport_tag_send(pe, tag, readable({}, buffer), completion);
  }
  StartGuard guard(*this);
  run_tag_send(make(completion), pe, tag, buffer);
  return Status::pending();
}

StagedFlow Staging::run_tag_send(StagedTransfer& transfer, int pe, Tag tag, ConstBuffer local) {
  const std::pair order{pe, tag};
  held_sends_[order].push_back(&transfer);
  Status status = (co_await in_memory(transfer, prepare_send(transfer, local))).status;
  if (!status.failed() && held_sends_[order].front() != &transfer) {
    status = (co_await for_turn(transfer)).status;
  }
  if (!status.failed() && closing_) status = closed();
  Status sent;
  if (!status.failed())
    sent = machine_.transport_tag_send(pe, tag, readable(transfer.bounce, local), &transfer);
  auto& queue = held_sends_[order];
  std::erase(queue, &transfer);
  if (queue.empty()) held_sends_.erase(order);
  end_turn();
  if (!status.failed()) status = (co_await in_machine(transfer, std::move(sent), local.size_bytes)).status;
  const std::size_t sent_bytes = status.ok() ? local.size_bytes : 0;
  finish(transfer, std::move(status), sent_bytes);
}

Status Staging::tag_receive(Tag tag, Tag mask, const Buffer& buffer, Completion* completion) {
  const bool is_ready = takes_as_is(buffer) || buffer.size_bytes == 0;
  if (is_ready && !is_behind(tag, mask, nullptr)) {
    return machine_.transport_tag_receive(tag, mask, writable({}, buffer), completion);
  }
  StartGuard guard(*this);
  StagedTransfer& transfer = make(completion);
  transfer.tag = tag;
  transfer.mask = mask;
  run_tag_receive(transfer, buffer);
  return Status::pending();
}

StagedFlow Staging::run_tag_receive(StagedTransfer& transfer, Buffer local) {
  held_receives_.push_back(&transfer);
  Status status = (co_await in_memory(transfer, prepare_receive(transfer, local))).status;
  if (!status.failed() && is_behind(transfer.tag, transfer.mask, &transfer)) {
    status = (co_await for_turn(transfer)).status;
  }
  if (!status.failed() && closing_) status = closed();
  const Buffer into = writable(transfer.bounce, local);
  Status received = status.failed()
                        ? Status()
                        : machine_.transport_tag_receive(transfer.tag, transfer.mask, into, &transfer);
  std::erase(held_receives_, &transfer);
  end_turn();
  std::size_t size_bytes = 0;
  if (!status.failed()) {
    auto outcome = co_await in_machine(transfer, std::move(received), local.size_bytes);
    status = std::move(outcome.status);
    size_bytes = outcome.size_bytes;
  }
  if (status.ok()) {
    count_receive(transfer, local.place, size_bytes);
    status = (co_await in_memory(transfer, land(transfer, local, size_bytes))).status;
  }
  finish(transfer, std::move(status), size_bytes);
}

bool Staging::is_behind(Tag tag, Tag mask, const StagedTransfer* until) const {
  for (const StagedTransfer* held : held_receives_) {
    if (held == until) return false;
    if (((held->tag ^ tag) & held->mask & mask) == 0) return true;
  }
  return false;
}

void Staging::end_turn() {
  turns_changed_ = true;
  machine_.attention().wanted = true;
}

bool Staging::resume_waiting() {
  bool any = false;
  // A resumed flow may end others, so each round searches again.
  while (std::exchange(turns_changed_, false)) {
    StagedTransfer* next = nullptr;
    for (auto& [order, queue] : held_sends_) {
      if (queue.front()->phase == StagingPhase::kTurn) next = queue.front();
    }
    for (StagedTransfer* held : held_receives_) {
      if (held->phase == StagingPhase::kTurn && !is_behind(held->tag, held->mask, held)) next = held;
    }
    if (next == nullptr) break;
    resume(*next, {}, 0);
    turns_changed_ = any = true;
  }
  return any;
}

// --- active messages ---

Status Staging::am_send(int pe, AmId id, std::span<const std::byte> header, const ConstBuffer& payload,
                        Completion* completion) {
  if (payload.size_bytes == 0) return machine_.transport_am_send(pe, id, header, {}, completion);
  StartGuard guard(*this);
  run_am_send(make(completion), pe, id, {header.begin(), header.end()}, payload);
  return Status::pending();
}

StagedFlow Staging::run_am_send(StagedTransfer& transfer, int pe, AmId id, std::vector<std::byte> header,
                                ConstBuffer local) {
  Status status = (co_await in_memory(transfer, prepare_send(transfer, local))).status;
  if (!status.failed() && closing_) status = closed();
  if (!status.failed()) {
    Status sent = machine_.transport_am_send(pe, id, header, readable(transfer.bounce, local), &transfer);
    status = (co_await in_machine(transfer, std::move(sent), local.size_bytes)).status;
  }
  const std::size_t sent_bytes = status.ok() ? local.size_bytes : 0;
  finish(transfer, std::move(status), sent_bytes);
}

Status Staging::am_receive(AmPayload payload, const Buffer& into, Completion* completion) {
  StartGuard guard(*this);
  run_am_receive(make(completion), std::move(payload), into);
  return Status::pending();
}

StagedFlow Staging::run_am_receive(StagedTransfer& transfer, AmPayload payload, Buffer local) {
  local.size_bytes = payload.size_bytes();
  count_receive(transfer, local.place, local.size_bytes);
  Status status;
  if (payload.data() != nullptr) {
    // Inside the handler the bytes may be on loan for the call only, so the payload stays until the copy is
    // done.
    status =
        (co_await in_memory(transfer, memory_.copy(local, {payload.data(), local.size_bytes}, &transfer)))
            .status;
  } else {
    status = (co_await in_memory(transfer, prepare_receive(transfer, local))).status;
    if (!status.failed() && closing_) status = closed();
    if (!status.failed()) {
      Status received =
          machine_.transport_am_receive(std::move(payload), writable(transfer.bounce, local), &transfer);
      status = (co_await in_machine(transfer, std::move(received), local.size_bytes)).status;
    }
    if (status.ok()) status = (co_await in_memory(transfer, land(transfer, local, local.size_bytes))).status;
  }
  const std::size_t received_bytes = status.ok() ? local.size_bytes : 0;
  finish(transfer, std::move(status), received_bytes);
}

// --- progress, cancel, close ---

bool Staging::progress() {
  bool any = waits_.in_memory != 0 && memory_.progress();
  while (!finished_.empty()) {
    Finished finished = std::move(finished_.front());
    finished_.pop_front();
    deliver(finished);
    any = true;
  }
  return resume_waiting() || any;
}

void Staging::cancel(Completion* completion) {
  auto& transfer =
      *reinterpret_cast<StagedTransfer*>(reinterpret_cast<std::uintptr_t>(completion->in_flight) & ~kOwned);
  switch (transfer.phase) {
    case StagingPhase::kMemory:
      transfer.cancelled = true;
      break;  // the device still uses the buffers
    case StagingPhase::kMachine:
      machine_.cancel(&transfer);
      break;
    case StagingPhase::kTurn:
    case StagingPhase::kPeer:
      resume(transfer, {StatusCode::kCancelled, "the transfer was cancelled"}, 0);
      break;
    case StagingPhase::kRunning:
    case StagingPhase::kFinished:
      break;
  }
}

void Staging::settle() {
  memory_.wait_for_devices([this] {
    progress();
    return waits_.in_memory == 0;
  });
  progress();
}

void Staging::begin_close() {
  closing_ = true;
  // Transfers that wait for their turn or for a peer can no longer complete; end them here.
  for (;;) {
    auto waits = std::find_if(live_.begin(), live_.end(), [](const auto& transfer) {
      return transfer->phase == StagingPhase::kTurn || transfer->phase == StagingPhase::kPeer;
    });
    if (waits == live_.end()) break;
    resume(**waits, closed(), 0);
  }
  // Some copies read payloads that the machine is about to release.
  settle();
}

void Staging::end_close() {
  settle();
  // A hung device may still use the buffers of its transfers, so these transfers are leaked. Their completions are
  // called with kClosed.
  while (!live_.empty()) {
    StagedTransfer& lost = *live_.back().release();
    live_.pop_back();
    lost.function = [](Completion*, Status, std::size_t) {};
    if (lost.user == nullptr) continue;
    lost.user->in_flight = nullptr;
    lost.user->function(lost.user, closed(), 0);
  }
}

}  // namespace weft::machine
