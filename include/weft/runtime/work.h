// What a scheduler runs: messages that arrived, local calls, coroutines to resume, timers.
//
// A Work is posted to the queue of one PE and is called exactly once: kRun when its turn comes, or kDrop when
// the runtime ends first, in which case it only gives back what it owns. It may be freed or posted again in
// the call.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

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

// Resumes a suspended coroutine. If it is dropped, it does nothing: the frame belongs to the caller that started
// the coroutine.
struct ResumeWork : Work {
  ResumeWork() : Work(&ResumeWork::call) {}
  std::coroutine_handle<> handle;

 private:
  static void call(Work* self, Runtime&, WorkAction action) {
    if (action == WorkAction::kRun) static_cast<ResumeWork*>(self)->handle.resume();
  }
};

// First in, first out; work with a priority other than 0 goes before (negative) or after (positive) it, the
// smallest number first and in order of arrival among equals.
class WorkQueue {
 public:
  bool empty() const { return head_ == nullptr && prioritised_.empty(); }

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
    if (priority == 0) {
      push(work);
    } else {
      prioritised_.push({priority, next_sequence_++, work});
    }
  }

  // Null when empty.
  Work* pop() {
    if (!prioritised_.empty() && (head_ == nullptr || prioritised_.top().priority < 0))
      return pop_prioritised();
    Work* work = head_;
    if (work != nullptr) head_ = work->next;
    return work;
  }

 private:
  struct Entry {
    std::int32_t priority;
    std::uint64_t sequence;
    Work* work;
    bool operator<(const Entry& other) const {
      return priority != other.priority ? priority > other.priority : sequence > other.sequence;
    }
  };

  Work* pop_prioritised() {
    Work* work = prioritised_.top().work;
    prioritised_.pop();
    return work;
  }

  Work* head_ = nullptr;
  Work* tail_ = nullptr;
  std::priority_queue<Entry> prioritised_;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace weft::runtime
