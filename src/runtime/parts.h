// What a Runtime owns besides its queue; private to the runtime's own files.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/runtime/runtime.h"

#include "runtime/message/attachments.h"
#include "runtime/termination.h"

namespace weft::runtime {

struct Runtime::Parts {
  using Clock = std::chrono::steady_clock;

  struct Handler {
    MessageHandler function = nullptr;
    void* context = nullptr;
  };
  struct Timer {
    Clock::time_point when;
    std::uint64_t sequence;
    Work* work;
    bool operator<(const Timer& other) const {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };

  Parts(Runtime& runtime, const RuntimeOptions& options)
      : attachments(runtime, options.messaging_path), termination(runtime) {}

  std::array<Handler, kNumHandlers> handlers;
  std::vector<std::pair<std::type_index, std::unique_ptr<Model>>> models;

  std::priority_queue<Timer> timers;
  std::uint64_t next_timer = 0;

  // Futures of this PE that others may set; the table holds a share of each.
  std::unordered_map<std::uint64_t, FutureState*> exported_futures;
  std::uint64_t next_future = 1;

  // Filled by any thread; the flag keeps the mutex off the scheduler's path.
  std::mutex mailbox_mutex;
  std::vector<std::function<void()>> mailbox;
  std::atomic<bool> mail_arrived{false};

  Clock::time_point idle_since;
  int spin_rounds = 0;
  Attachments attachments;
  Termination termination;
};

}  // namespace weft::runtime
