// How a staged transfer is written: as a coroutine that awaits one asynchronous operation after the other,
// with the transfer itself as the operation's Completion. Private to staging*.cpp and staging.h.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/machine.h"
#include "machine/staging/bounce_pool.h"
#include "machine/transport_machine.h"

namespace weft::machine {

class Staging;

// The event that a staged transfer waits for.
enum class StagingPhase : std::uint8_t { kRunning, kMemory, kMachine, kTurn, kPeer, kFinished };

// State that all staged transfers of one PE share.
struct StagingWaits {
  Attention& attention;
  int in_memory = 0;  // transfers that wait for the memory layer
};

struct StagedTransfer : base::Completion {
  explicit StagedTransfer(StagingWaits& waits_in) : waits(waits_in) {}

  StagingWaits& waits;
  Staging* staging = nullptr;
  base::Completion* user = nullptr;  // null for work done on a peer's behalf
  std::size_t index = 0;             // in live_
  StagingPhase phase = StagingPhase::kRunning;
  bool cancelled = false;

  std::coroutine_handle<> waiting;
  base::Status status;
  std::size_t size_bytes = 0;

  Bounce bounce;
  // `tag` and `mask` belong to a tagged message.
  Tag tag = 0;
  Tag mask = 0;
  // For a get or an atomic: `answer` is what the peer sent, and `answer_status` is pending until then. For a flush:
  // `covers_below` says which puts it covers: those with a smaller request number.
  AmPayload answer;
  base::Status answer_status = base::Status::pending();
  std::uint64_t request = 0;
  int peer = -1;  // that answers
  std::uint64_t old_value = 0;
  std::uint64_t covers_below = 0;
  base::Status failure;
};

// A coroutine that starts at once and frees itself when it is over.
struct StagedFlow {
  struct promise_type {
    StagedFlow get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

// One wait. `started` is what the operation's start function returned: only `pending` suspends.
struct StagedStep {
  struct Outcome {
    base::Status status;
    std::size_t size_bytes;
  };

  StagedTransfer& transfer;
  StagingPhase phase;
  base::Status started;
  std::size_t size_bytes;
  bool suspended = false;

  bool await_ready() const { return !started.is_pending(); }
  void await_suspend(std::coroutine_handle<> flow) {
    suspended = true;
    transfer.waiting = flow;
    transfer.phase = phase;
    if (phase != StagingPhase::kMemory) return;
    ++transfer.waits.in_memory;
    transfer.waits.attention.wanted = true;
  }
  // A transfer that was cancelled while it waited ends here.
  Outcome await_resume() {
    Outcome outcome = suspended ? Outcome{std::move(transfer.status), transfer.size_bytes}
                                : Outcome{std::move(started), size_bytes};
    if (outcome.status.ok() && transfer.cancelled && phase == StagingPhase::kMemory) {
      outcome.status = {base::StatusCode::kCancelled, "the transfer was cancelled while it was staged"};
    }
    return outcome;
  }
};

// The buffer that the machine reads or writes: the bounce if there is one, else the local buffer, whose stream is done.
inline memory::ConstBuffer readable(const Bounce& bounce, const memory::ConstBuffer& local) {
  if (bounce.data() != nullptr) return {bounce.data(), local.size_bytes};
  return local.size_bytes == 0 ? memory::ConstBuffer()
                               : memory::ConstBuffer(local.data, local.size_bytes, local.place);
}

inline memory::Buffer writable(const Bounce& bounce, const memory::Buffer& local) {
  if (bounce.data() != nullptr) return {bounce.data(), local.size_bytes, {}, nullptr};
  return local.size_bytes == 0 ? memory::Buffer()
                               : memory::Buffer{local.data, local.size_bytes, local.place, nullptr};
}

}  // namespace weft::machine
