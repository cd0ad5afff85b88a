// Put, get and flush where one side is memory that the machine does not address. What lies at the peer is
// reached by messages to the peer's staging: a put carries the data and is acknowledged, a get is answered
// with the data.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "machine/staging/staged_machine.h"

namespace weft::machine {

using base::Completion;
using base::Status;
using base::StatusCode;
using memory::Buffer;
using memory::ConstBuffer;

// The header of every message between stagings. Same build on all PEs, so it travels as it lies in memory.
struct Staging::Message {
  enum class Type : std::uint8_t { kPut, kPutDone, kGet, kGetDone, kAtomic, kAtomicDone };

  Type type = Type::kPut;
  // `code` is set in an answer: the outcome at the peer.
  StatusCode code = StatusCode::kOk;
  AtomicOperation operation = AtomicOperation::kAdd;
  std::int32_t source_pe = 0;
  std::uint64_t request = 0;
  std::uint64_t region = 0;
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  // The operands of an atomic, whose target is `region`. Its answer has the old value as `operand`.
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;

  std::vector<std::byte> bytes() const {
    const auto* begin = reinterpret_cast<const std::byte*>(this);
    return {begin, begin + sizeof *this};
  }
};

namespace {

std::uint64_t region_of(const RemoteMemory& memory) {
  std::uint64_t region = 0;
  if (memory.key.size() == sizeof region) std::memcpy(&region, memory.key.data(), sizeof region);
  return region;
}

}  // namespace

base::Result<RemoteMemory> Staging::register_memory(const Buffer& memory) {
  const std::uint64_t region = next_sequence_++;
  RemoteMemory result{reinterpret_cast<std::uintptr_t>(memory.data), memory.size_bytes, memory.place, {}};
  result.key.resize(sizeof region);
  std::memcpy(result.key.data(), &region, sizeof region);
  regions_.emplace(region, Buffer{memory.data, memory.size_bytes, memory.place, nullptr});
  return result;
}

Status Staging::deregister_memory(const RemoteMemory& memory) {
  if (regions_.erase(region_of(memory)) == 1) return {};
  return not_registered(memory);
}

base::Result<Buffer> Staging::find_region(const Message& message) const {
  auto found = regions_.find(message.region);
  if (found == regions_.end()) return Status(StatusCode::kNotFound, "no such region");
  Buffer buffer = found->second;
  if (message.offset_bytes > buffer.size_bytes ||
      message.size_bytes > buffer.size_bytes - message.offset_bytes) {
    return Status(StatusCode::kOutOfRange, "outside the region");
  }
  buffer.data = static_cast<std::byte*>(buffer.data) + message.offset_bytes;
  buffer.size_bytes = message.size_bytes;
  return buffer;
}

Status Staging::send(int pe, std::span<const std::byte> header, const ConstBuffer& payload,
                     Completion* completion) {
  if (closing_) return closed();
  if (payload.size_bytes == 0 || takes_as_is(payload)) {
    return machine_.transport_am_send(pe, kStagingAmId, header,
                                      payload.size_bytes == 0 ? ConstBuffer() : payload, completion);
  }
  return am_send(pe, kStagingAmId, header, payload, completion);
}

// --- put ---

Status Staging::put(int pe, const ConstBuffer& local, const RemoteMemory& remote, std::size_t offset_bytes,
                    Completion* completion) {
  StartGuard guard(*this);
  StagedTransfer& transfer = make(completion);
  if (addresses(remote.place)) {
    run_put(transfer, pe, local, remote, offset_bytes);
  } else {
    run_put_by_message(transfer, pe, local, region_of(remote), offset_bytes);
  }
  return Status::pending();
}

StagedFlow Staging::run_put(StagedTransfer& transfer, int pe, ConstBuffer local, RemoteMemory remote,
                            std::size_t offset_bytes) {
  const std::uint64_t sequence = next_sequence_++;
  unflushed_.emplace(sequence, pe);
  Status status = (co_await in_memory(transfer, prepare_send(transfer, local))).status;
  if (!status.failed() && closing_) status = closed();
  Status started;
  if (!status.failed()) {
    started = machine_.transport_put(pe, readable(transfer.bounce, local), remote, offset_bytes, &transfer);
  }
  end_unflushed(sequence, status.failed() ? status : started);  // from here the machine's own flush covers it
  if (!status.failed()) status = (co_await in_machine(transfer, std::move(started), local.size_bytes)).status;
  const std::size_t put_bytes = status.ok() ? local.size_bytes : 0;
  finish(transfer, std::move(status), put_bytes);
}

StagedFlow Staging::run_put_by_message(StagedTransfer& transfer, int pe, ConstBuffer local,
                                       std::uint64_t region, std::size_t offset_bytes) {
  const std::uint64_t sequence = next_sequence_++;
  unflushed_.emplace(sequence, pe);
  const Message message{.type = Message::Type::kPut,
                        .source_pe = machine_.pe(),
                        .request = sequence,
                        .region = region,
                        .offset_bytes = offset_bytes,
                        .size_bytes = local.size_bytes};
  sending_puts_.emplace(sequence, &transfer);
  Status sent = send(pe, message.bytes(), local, &transfer);
  Status status = (co_await in_machine(transfer, std::move(sent), local.size_bytes)).status;
  sending_puts_.erase(sequence);
  if (status.failed()) end_unflushed(sequence, status);
  if (status.ok()) status = std::move(transfer.failure);
  const std::size_t put_bytes = status.ok() ? local.size_bytes : 0;
  finish(transfer, std::move(status), put_bytes);
}

void Staging::serve_put(const Message& message, AmArrival& arrival) {
  base::Result<Buffer> region = find_region(message);
  if (region.ok()) {
    run_serve_put(make(nullptr), message.source_pe, message.request, arrival.take(), *region);
    return;
  }
  const Message answer{.type = Message::Type::kPutDone,
                       .code = region.status().code(),
                       .source_pe = machine_.pe(),
                       .request = message.request};
  run_answer(make(nullptr), message.source_pe, answer.bytes(), {});
}

StagedFlow Staging::run_serve_put(StagedTransfer& transfer, int pe, std::uint64_t request, AmPayload payload,
                                  Buffer target) {
  Status received = machine_.am_receive(std::move(payload), target, &transfer);
  Status status = (co_await in_machine(transfer, std::move(received), target.size_bytes)).status;
  const Message answer{
      .type = Message::Type::kPutDone, .code = status.code(), .source_pe = machine_.pe(), .request = request};
  const std::vector<std::byte> header = answer.bytes();
  Status sent = send(pe, header, {}, &transfer);
  (void)co_await in_machine(transfer, std::move(sent), 0);  // a requester that is gone needs no answer
  finish(transfer, {}, 0);
}

StagedFlow Staging::run_answer(StagedTransfer& transfer, int pe, std::vector<std::byte> header,
                               ConstBuffer payload) {
  Status sent = send(pe, header, payload, &transfer);
  (void)co_await in_machine(transfer, std::move(sent), payload.size_bytes);
  finish(transfer, {}, 0);
}

// --- get ---

Status Staging::get(int pe, const Buffer& local, const RemoteMemory& remote, std::size_t offset_bytes,
                    Completion* completion) {
  StartGuard guard(*this);
  StagedTransfer& transfer = make(completion);
  if (addresses(remote.place)) {
    run_get(transfer, pe, local, remote, offset_bytes);
  } else {
    run_get_by_message(transfer, pe, local, region_of(remote), offset_bytes);
  }
  return Status::pending();
}

StagedFlow Staging::run_get(StagedTransfer& transfer, int pe, Buffer local, RemoteMemory remote,
                            std::size_t offset_bytes) {
  Status status = (co_await in_memory(transfer, prepare_receive(transfer, local))).status;
  if (!status.failed() && closing_) status = closed();
  if (!status.failed()) {
    Status started =
        machine_.transport_get(pe, writable(transfer.bounce, local), remote, offset_bytes, &transfer);
    status = (co_await in_machine(transfer, std::move(started), local.size_bytes)).status;
  }
  if (status.ok()) status = (co_await in_memory(transfer, land(transfer, local, local.size_bytes))).status;
  const std::size_t got_bytes = status.ok() ? local.size_bytes : 0;
  finish(transfer, std::move(status), got_bytes);
}

StagedFlow Staging::run_get_by_message(StagedTransfer& transfer, int pe, Buffer local, std::uint64_t region,
                                       std::size_t offset_bytes) {
  const std::uint64_t request = next_sequence_++;
  const Message message{.type = Message::Type::kGet,
                        .source_pe = machine_.pe(),
                        .request = request,
                        .region = region,
                        .offset_bytes = offset_bytes,
                        .size_bytes = local.size_bytes};
  const std::vector<std::byte> header = message.bytes();
  transfer.peer = pe;
  waiting_.emplace(request, &transfer);
  Status sent = send(pe, header, {}, &transfer);
  Status status = (co_await in_machine(transfer, std::move(sent), 0)).status;
  if (!status.failed()) status = (co_await from_peer(transfer)).status;
  waiting_.erase(request);
  if (!status.failed() && transfer.answer.size_bytes() != local.size_bytes) {
    status = {StatusCode::kCorrupt, base::format("PE {} answered a get of {} bytes with {}", pe,
                                                 local.size_bytes, transfer.answer.size_bytes())};
  }
  if (!status.failed()) {
    Status received = machine_.am_receive(std::move(transfer.answer), local, &transfer);
    status = (co_await in_machine(transfer, std::move(received), local.size_bytes)).status;
  }
  const std::size_t got_bytes = status.ok() ? local.size_bytes : 0;
  finish(transfer, std::move(status), got_bytes);
}

void Staging::serve_get(const Message& message) {
  base::Result<Buffer> region = find_region(message);
  const Message answer{.type = Message::Type::kGetDone,
                       .code = region.status().code(),
                       .source_pe = machine_.pe(),
                       .request = message.request};
  run_answer(make(nullptr), message.source_pe, answer.bytes(),
             region.ok() ? ConstBuffer(*region) : ConstBuffer());
}

void Staging::get_answered(const Message& message, AmArrival& arrival) {
  auto found = waiting_.find(message.request);
  if (found == waiting_.end()) return;  // cancelled; the answer is dropped
  StagedTransfer& transfer = *found->second;
  transfer.answer = arrival.take();
  answered(transfer, refused_by_owner(message.code, message.source_pe, "get"));
}

// --- atomics ---

namespace {

std::uint64_t apply(AtomicOperation operation, std::atomic_ref<std::uint64_t> word, std::uint64_t operand,
                    std::uint64_t compare) {
  switch (operation) {
    case AtomicOperation::kAdd:
      return word.fetch_add(operand);
    case AtomicOperation::kSwap:
      return word.exchange(operand);
    case AtomicOperation::kAnd:
      return word.fetch_and(operand);
    case AtomicOperation::kOr:
      return word.fetch_or(operand);
    case AtomicOperation::kXor:
      return word.fetch_xor(operand);
    case AtomicOperation::kCompareSwap:
      word.compare_exchange_strong(compare, operand);
      return compare;  // holds the old value now
  }
  return 0;
}

}  // namespace

void Staging::admit_atomics(const RemoteMemory& memory) {
  if (memory.place.is_host()) atomic_ranges_.emplace(memory.address, memory.size_bytes);
}

void Staging::refuse_atomics(const RemoteMemory& memory) {
  auto [position, end] = atomic_ranges_.equal_range(memory.address);
  for (; position != end; ++position) {
    if (position->second != memory.size_bytes) continue;
    atomic_ranges_.erase(position);
    return;
  }
}

Status Staging::atomic(int pe, AtomicOperation operation, std::uint64_t address, std::uint64_t operand,
                       std::uint64_t compare, std::uint64_t* result, Completion* completion) {
  StartGuard guard(*this);
  const std::uint64_t request = next_sequence_++;
  const Message message{.type = Message::Type::kAtomic,
                        .operation = operation,
                        .source_pe = machine_.pe(),
                        .request = request,
                        .region = address,
                        .operand = operand,
                        .compare = compare};
  StagedTransfer& transfer = make(completion);
  transfer.request = request;
  transfer.peer = pe;
  unflushed_.emplace(request, pe);
  run_atomic(transfer, pe, message.bytes(), result);
  return Status::pending();
}

StagedFlow Staging::run_atomic(StagedTransfer& transfer, int pe, std::vector<std::byte> header,
                               std::uint64_t* result) {
  waiting_.emplace(transfer.request, &transfer);
  Status sent = send(pe, header, {}, &transfer);
  Status status = (co_await in_machine(transfer, std::move(sent), 0)).status;
  if (!status.failed()) status = (co_await from_peer(transfer)).status;
  waiting_.erase(transfer.request);
  if (status.ok() && result != nullptr) *result = transfer.old_value;
  end_unflushed(transfer.request, status);
  finish(transfer, std::move(status), sizeof(std::uint64_t));
}

void Staging::serve_atomic(const Message& message) {
  // Ranges may overlap, so the nearest one below need not be the one that holds the word.
  const std::uint64_t address = message.region;
  const bool admitted =
      address % sizeof(std::uint64_t) == 0 && std::ranges::any_of(atomic_ranges_, [&](const auto& range) {
        return address >= range.first && address - range.first + sizeof(std::uint64_t) <= range.second;
      });
  Message answer{.type = Message::Type::kAtomicDone,
                 .code = admitted ? StatusCode::kOk : StatusCode::kNotFound,
                 .source_pe = machine_.pe(),
                 .request = message.request};
  if (admitted) {
    auto* word = reinterpret_cast<std::uint64_t*>(address);
    answer.operand = apply(message.operation, std::atomic_ref(*word), message.operand, message.compare);
  }
  run_answer(make(nullptr), message.source_pe, answer.bytes(), {});
}

void Staging::atomic_answered(const Message& message) {
  auto found = waiting_.find(message.request);
  if (found == waiting_.end()) return;  // cancelled
  found->second->old_value = message.operand;
  answered(*found->second, refused_by_owner(message.code, message.source_pe, "atomic"));
}

// --- flush ---

Status Staging::flush(Completion* completion) {
  StartGuard guard(*this);
  StagedTransfer& transfer = make(completion);
  transfer.covers_below = next_sequence_++;
  run_flush(transfer);
  return Status::pending();
}

StagedFlow Staging::run_flush(StagedTransfer& transfer) {
  transfer.failure = std::exchange(refused_put_, {});
  Status status;
  if (!unflushed_.empty()) {
    flushes_.push_back(&transfer);
    status = (co_await from_peer(transfer)).status;
    std::erase(flushes_, &transfer);
  }
  if (!status.failed()) {
    Status started = machine_.transport_flush(&transfer);
    status = (co_await in_machine(transfer, std::move(started), 0)).status;
  }
  if (status.ok()) status = std::move(transfer.failure);
  finish(transfer, std::move(status), 0);
}

// Reported once at least: by the put itself, by the flushes that wait for it, or by the next flush.
void Staging::put_answered(const Message& message) {
  if (!unflushed_.contains(message.request)) return;
  const Status status = refused_by_owner(message.code, message.source_pe, "put");
  if (status.failed()) {
    const auto sending = sending_puts_.find(message.request);
    const bool is_awaited = std::ranges::any_of(
        flushes_, [&](const StagedTransfer* flush) { return message.request < flush->covers_below; });
    if (sending != sending_puts_.end()) {
      sending->second->failure = status;
    } else if (!is_awaited && refused_put_.ok()) {
      refused_put_ = status;
    }
  }
  end_unflushed(message.request, status);
}

void Staging::end_unflushed(std::uint64_t sequence, const Status& status) {
  if (unflushed_.erase(sequence) == 0) return;
  for (;;) {
    StagedTransfer* over = nullptr;
    for (StagedTransfer* flush : flushes_) {
      if (status.failed() && sequence < flush->covers_below && flush->failure.ok()) flush->failure = status;
      if (unflushed_.empty() || unflushed_.begin()->first > flush->covers_below) over = flush;
    }
    if (over == nullptr) return;
    resume(*over, {}, 0);
  }
}

// --- losses ---

void Staging::lose_peer(int pe) {
  // A transfer that ends may end others, so each round searches again.
  for (;;) {
    const auto waits = std::ranges::find_if(waiting_, [&](const auto& entry) {
      return entry.second->peer == pe && entry.second->answer_status.is_pending() &&
             entry.second->phase != StagingPhase::kFinished;
    });
    if (waits == waiting_.end()) break;
    StagedTransfer& transfer = *waits->second;
    transfer.peer = -1;
    answered(transfer, lost_peer(pe));
  }
  std::vector<std::uint64_t> sequences;
  for (const auto& [sequence, owner] : unflushed_) {
    if (owner == pe) sequences.push_back(sequence);
  }
  for (const std::uint64_t sequence : sequences) end_unflushed(sequence, lost_peer(pe));
}

// --- messages ---

void Staging::on_message(void* self, AmArrival& arrival) {
  auto& staging = *static_cast<Staging*>(self);
  Message message;
  if (staging.closing_ || arrival.header.size() != sizeof message) return;
  std::memcpy(&message, arrival.header.data(), sizeof message);
  // Bytes from a peer are a claim: a message from a PE that does not exist is dropped.
  if (message.source_pe < 0 || message.source_pe >= staging.machine_.num_pes()) return;
  switch (message.type) {
    case Message::Type::kPut:
      staging.serve_put(message, arrival);
      break;
    case Message::Type::kGet:
      staging.serve_get(message);
      break;
    case Message::Type::kAtomic:
      staging.serve_atomic(message);
      break;
    case Message::Type::kAtomicDone:
      staging.atomic_answered(message);
      break;
    case Message::Type::kGetDone:
      staging.get_answered(message, arrival);
      break;
    case Message::Type::kPutDone:
      staging.put_answered(message);
      break;
  }
}

}  // namespace weft::machine
