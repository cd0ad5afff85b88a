// The common parts of the operations of peer memory: how they mark and end the caller's Completion, and what they
// wait for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "machine/peer_memory/mapping/control_messages.h"
#include "machine/transfer_counts.h"
#include "machine/transport_machine.h"
#include "memory/memory.h"

namespace weft::machine {

// An operation in flight. While it is, the caller's Completion points at it, so that Machine::cancel finds
// it.
class PeerOperation {
 public:
  explicit PeerOperation(base::Completion* user) : user_(user) {
    user_->in_flight = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(this) | kOwned);
  }
  PeerOperation(const PeerOperation&) = delete;
  PeerOperation& operator=(const PeerOperation&) = delete;

  // Ends it early if it still can; it completes exactly once in any case.
  virtual void cancel() = 0;

  bool is_over() const { return user_ == nullptr; }
  base::Completion* user() const { return user_; }
  // Completes the caller's operation. REQUIRES: not over.
  void complete(base::Status status, std::size_t size_bytes) {
    base::Completion* const user = take_user();
    user->function(user, std::move(status), size_bytes);
  }
  // Is over without a call: the caller's operation was refused, or another operation completes it.
  base::Completion* take_user() {
    user_->in_flight = nullptr;
    return std::exchange(user_, nullptr);
  }

  // Whether `completion` belongs to such an operation.
  static bool owns(const base::Completion& completion) {
    return (reinterpret_cast<std::uintptr_t>(completion.in_flight) & kOwned) != 0;
  }
  // REQUIRES: owns(completion).
  static PeerOperation& of(const base::Completion& completion) {
    return *reinterpret_cast<PeerOperation*>(reinterpret_cast<std::uintptr_t>(completion.in_flight) &
                                             ~kOwned);
  }

 protected:
  ~PeerOperation() = default;

 private:
  // Set in the in_flight of the caller's Completion; neither the machine's handles nor staging's have it.
  static constexpr std::uintptr_t kOwned = 2;

  base::Completion* user_;  // null when it is over
};

// Ends a send that is in flight when the machine closes.
inline base::Status closed_before_sending() {
  return {base::StatusCode::kClosed, "the machine was closed before the message was sent"};
}

// State that all parts of a PE's peer memory share.
struct PeerContext {
  TransportMachine& machine;
  memory::Memory& memory;
  TransferCounts& counts;
  ControlMessages& control;
  // Copies and streams that are waited for: Memory::progress() completes them.
  int memory_waits = 0;

  // Whether `completion` will be called when the work queued on `stream` is done.
  bool wait_for_stream(memory::Place place, memory::StreamHandle stream, base::Completion* completion) {
    return began(memory.when_stream_done(place, stream, completion));
  }
  // The given buffer, without its stream if the stream is idle. The test takes a CUDA device 1.3 us. A receive that waits
  // for a stream takes turns of progress(), and is not posted meanwhile.
  template <typename Buffer>
  Buffer without_idle_stream(Buffer buffer) {
    if (buffer.stream != nullptr && memory.is_stream_idle(buffer.place, buffer.stream))
      buffer.stream = nullptr;
    return buffer;
  }
  // Whether `status`, of an operation of the memory layer, says that its completion will be called.
  bool began(const base::Status& status) {
    if (!status.is_pending()) return false;
    ++memory_waits;
    machine.attention().wanted = true;
    return true;
  }
  // Counts a copy that has begun and that completes `user`.
  void count(TransferType type, TransferPath path, const memory::ConstBuffer& source,
             base::Completion* user) {
    counts.add(type, path, source.place.kind, source.size_bytes);
    if (counts.is_observed()) [[unlikely]]
      counts.observe(type, path, source.place.kind, source.size_bytes, base::Status::pending(), user);
  }
  // Sends a message with its tag, for a send that `user` has pending. Called inside progress() or a start
  // call of another operation.
  void send_tagged(int pe, Tag tag, const memory::ConstBuffer& source, base::Completion* user) {
    base::Status status = machine.tag_send(pe, tag, source, user);
    if (!status.is_pending()) finish_later(user, std::move(status), source.size_bytes);
  }
  void send_movable(int pe, Tag tag, MovableSource& source, base::Completion* user) {
    base::Status status = machine.tag_send_movable(pe, tag, source, user);
    if (!status.is_pending()) finish_later(user, std::move(status), source.size_bytes);
  }
  // Wakes a receiver that sleeps, after a store to memory that it polls when it is awake.
  void wake(int pe, const MailboxOwner& owner) {
    // Orders the store before this look; PostedReceives::before_sleep() does it the other way round.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (owner.is_asleep.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    control.send(pe, {.type = ControlMessage::Type::kWake, .file = {}});
  }
  // Completes it from the next progress().
  void finish_later(base::Completion* user, base::Status status, std::size_t size_bytes) {
    finished.push_back({user, std::move(status), size_bytes});
    machine.attention().wanted = true;
  }
  bool finish_all() {
    const bool any = !finished.empty();
    while (!finished.empty()) {
      Finished one = std::move(finished.front());
      finished.pop_front();
      const std::size_t size_bytes = one.status.ok() ? one.size_bytes : 0;
      one.user->function(one.user, std::move(one.status), size_bytes);
    }
    return any;
  }

  struct Finished {
    base::Completion* user;
    base::Status status;
    std::size_t size_bytes;
  };
  std::deque<Finished> finished;
};

}  // namespace weft::machine
