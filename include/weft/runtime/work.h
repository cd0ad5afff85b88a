// Work, the unit that a scheduler runs: an arrived message, a local call, a coroutine to resume, a timer.
//
// A Work is posted to the queue of one PE and is called exactly once: with kRun in its turn, or with kDrop if
// the runtime ends first. With kDrop it only releases what it owns. The call may free it or post it again.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "weft/runtime/work_meter.h"

namespace weft::runtime {

class Runtime;

enum class WorkAction : std::uint8_t { kRun, kDrop };

struct Work {
  using Function = void (*)(Work* self, Runtime& runtime, WorkAction action);

  Work() = default;
  explicit Work(Function on_turn) : function(on_turn) {}

  Function function = nullptr;
  Work* next = nullptr;
};

// Resumes a suspended coroutine. If it is dropped, it does nothing: the frame belongs to the caller that
// started the coroutine.
struct ResumeWork : Work {
  ResumeWork() : Work(&ResumeWork::call) {}
  std::coroutine_handle<> handle;

  // Keeps the coroutine that suspends. Its time counts as before when it is resumed.
  void suspend(std::coroutine_handle<> waiting, const WorkMeter& meter) {
    handle = waiting;
    if (meter.is_noted()) [[unlikely]]
      note(meter);
  }

 private:
  static void call(Work* self, Runtime&, WorkAction action) {
    if (action != WorkAction::kRun) return;
    static_cast<ResumeWork*>(self)->handle.resume();
  }
  // Keeps what is measured and what is observed, for call_noted().
  [[gnu::noinline]] void note(const WorkMeter& meter);
  static void call_noted(Work* self, Runtime& runtime, WorkAction action);

  WorkTimeShare time_;
  const void* run_ = nullptr;
};

// Work of priority 0 runs first in, first out. Work of negative priority runs before it, work of positive
// priority after it: the smallest number first, and equal ones in order of arrival.
class WorkQueue {
 public:
  bool empty() const { return head_ == nullptr && prioritised_.empty(); }

  // Counts it, up to `most`.
  std::size_t size(std::size_t most = SIZE_MAX) const {
    std::size_t count = prioritised_.size();
    for (const Work* work = head_; work != nullptr && count < most; work = work->next) ++count;
    return std::min(count, most);
  }

  void push(Work* work) {
    work->next = nullptr;
    if (head_ == nullptr) {
      head_ = work;
    } else {
      tail_->next = work;
    }
    tail_ = work;
  }

  void push(Work* work, std::int32_t priority) {
    if (priority == 0) [[likely]] {
      push(work);
    } else {
      push_prioritised(work, priority);
    }
  }

  // Null when empty.
  Work* pop() {
    if (!prioritised_.empty() && (head_ == nullptr || prioritised_.top().priority < 0)) [[unlikely]]
      return pop_prioritised();
    Work* work = head_;
    if (work != nullptr) [[likely]]
      head_ = work->next;
    return work;
  }

 private:
  struct PrioritisedWork {
    std::int32_t priority;
    std::uint64_t sequence;
    Work* work;
    bool operator<(const PrioritisedWork& other) const {
      return priority != other.priority ? priority > other.priority : sequence > other.sequence;
    }
  };

  [[gnu::noinline]] void push_prioritised(Work* work, std::int32_t priority) {
    prioritised_.push({priority, next_sequence_++, work});
  }

  [[gnu::noinline]] Work* pop_prioritised() {
    Work* work = prioritised_.top().work;
    prioritised_.pop();
    return work;
  }

  Work* head_ = nullptr;
  Work* tail_ = nullptr;
  std::priority_queue<PrioritisedWork> prioritised_;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace weft::runtime
