// How a staged transfer is written: as a coroutine that awaits one asynchronous operation after the other,
// with the transfer itself as the operation's Completion. Private to staging*.cpp.
#pragma once

#include <coroutine>
#include <exception>

#include "machine/staging/staging.h"

namespace weft::machine {

enum class Staging::Phase : std::uint8_t { kRunning, kMemory, kMachine, kTurn, kPeer, kFinished };

struct Staging::Transfer : base::Completion {
  Staging* staging = nullptr;
  base::Completion* user = nullptr;  // null for work done on a peer's behalf
  std::size_t index = 0;             // in live_
  Phase phase = Phase::kRunning;
  bool cancelled = false;

  std::coroutine_handle<> waiting;
  base::Status status;
  std::size_t size_bytes = 0;

  Bounce bounce;
  // Of a tagged message.
  Tag tag = 0;
  Tag mask = 0;
  // Of a get or an atomic: what the peer sent, and pending until it has. Of a flush: it covers the puts
  // before this one.
  AmPayload answer;
  base::Status answer_status = base::Status::pending();
  std::uint64_t request = 0;
  std::uint64_t old_value = 0;
  std::uint64_t covers_below = 0;
  base::Status failure;
};

// A coroutine that starts at once and frees itself when it is over.
struct Staging::Flow {
  struct promise_type {
    Flow get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

// One wait. `started` is what the operation's start function returned: only `pending` suspends.
struct Staging::Step {
  struct Outcome {
    base::Status status;
    std::size_t size_bytes;
  };

  Transfer& transfer;
  Phase phase;
  base::Status started;
  std::size_t size_bytes;
  bool suspended = false;

  bool await_ready() const { return !started.is_pending(); }
  void await_suspend(std::coroutine_handle<> flow) {
    suspended = true;
    transfer.waiting = flow;
    transfer.phase = phase;
    if (phase != Phase::kMemory) return;
    ++transfer.staging->memory_waits_;
    transfer.staging->machine_.attention().wanted = true;
  }
  // A transfer that was cancelled meanwhile goes no further.
  Outcome await_resume() {
    Outcome outcome = suspended ? Outcome{std::move(transfer.status), transfer.size_bytes}
                                : Outcome{std::move(started), size_bytes};
    if (outcome.status.ok() && transfer.cancelled && phase == Phase::kMemory) {
      outcome.status = {base::StatusCode::kCancelled, "the transfer was cancelled while it was staged"};
    }
    return outcome;
  }
};

// What the machine reads or writes: the bounce when there is one, else the buffer, whose stream is done by
// now.
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

// Inside it nothing completes.
class Staging::StartGuard {
 public:
  explicit StartGuard(Staging& staging) : staging_(staging) { ++staging_.starting_; }
  ~StartGuard() { --staging_.starting_; }
  StartGuard(const StartGuard&) = delete;
  StartGuard& operator=(const StartGuard&) = delete;

 private:
  Staging& staging_;
};

}  // namespace weft::machine
