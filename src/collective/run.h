// Run: one call of a collective at one member. It sends, and takes what arrives, in the order of its plan.
//
//     Run run(group, {.kind = Kind::kAllreduce, .number = 7, .data = value, .block_bytes = 8, .combiner = sum});
//     run.start();
//     // ... until run.is_over(), or co_await Ended(run)
//
// What a member sends is copied at once, so its memory is the caller's when the call is over. A member that fails takes its steps all the
// same, and those who hear of it fail too, with its error if it has one, so that no member waits for ever.
//
// Threads: the PE's.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/runtime/work.h"

#include "collective/group.h"
#include "collective/inbox.h"
#include "collective/plan.h"

namespace weft::collective {

// right = left op right, for so many bytes of whole values. Returns false if it failed. The memory does not overlap. One side is in the
// data of the call, the other one is aligned to 16 bytes.
struct Combiner {
  bool (*combine)(void* context, const std::byte* left, std::byte* right, std::size_t size_bytes) = nullptr;
  void* context = nullptr;
  // It may run code of the program, so it is called in a turn of its own and not while a message arrives.
  bool runs_program = false;
  // Blocks may be combined in any order.
  bool is_commutative = false;
};

struct Call {
  Kind kind = Kind::kBarrier;
  int root = 0;
  // Calls of one group that are under way at the same time have different numbers, the same at all members.
  std::uint64_t number = 0;
  Form form = Form::kFewMessages;  // of kBarrier, which has no blocks, the group chooses it
  // The blocks, in host memory; null without blocks.
  std::byte* data = nullptr;
  std::size_t block_bytes = 0;
  // For blocks of different sizes, of kAllgather, kReduceScatter and all parts of kDirect: where each begins, and the end of the last one.
  const std::size_t* begins = nullptr;
  // kAllgather of kDirect, with `begins`: where each block ends, if the next one does not begin there.
  const std::size_t* ends = nullptr;
  // kDirect, but for kBroadcast and kAllgather: where the blocks are at first, if they are not in `data`.
  const std::byte* input = nullptr;
  Combiner combiner = {};
};

class Run : public Awaiting, private runtime::Work {
 public:
  // The call is under way, and what comes for it is kept until start(). The group outlives the run.
  Run(Group& group, const Call& call);
  virtual ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // REQUIRES: called once.
  void start();
  bool is_over() const { return is_over_; }
  Kind kind() const { return call_.kind; }
  // The place of the member whose message the run awaits; nothing if it awaits none.
  std::optional<int> awaited_place() const;
  // Whether all messages have left. A caller that is to return waits for it too: its peers need what this PE has to go on sending.
  bool has_sent() const {
    return std::ranges::none_of(sent_.awaited,
                                [](const runtime::MessagePtr& one) { return one->is_shared(); }) &&
           group_.has_sent_again();
  }
  // Whether this member's combiner failed, or another member, or a member gave another number of bytes, or there is no memory. The data is
  // of no use then.
  bool has_failed() const { return has_failed_; }
  bool is_out_of_memory() const { return is_out_of_memory_; }
  // This member takes part and fails. REQUIRES: before start(), or when the run is over.
  void fail(const std::exception_ptr& error = nullptr) {
    has_failed_ = true;
    error_ = error;
  }
  // The error of the member that failed first, if it has one.
  const std::exception_ptr& error() const { return error_; }

  runtime::Scheduler& scheduler() const { return group_.scheduler(); }
  // Posts `work` once, when the run is over. REQUIRES: it is not over.
  void set_waiter(runtime::Work* work) { waiter_ = work; }

 protected:
  const Call& call() const { return call_; }
  // REQUIRES: before start(). Kind, form, root, number and what the combiner may do stay.
  Call& call() { return call_; }
  // The last thing that happens in the run, which may be freed here. It runs no code of the program: a
  // message may be arriving.
  virtual void ended() {
    if (waiter_ != nullptr) scheduler().post(std::exchange(waiter_, nullptr));
  }
  // The error of a member that gets so many bytes where it awaits so many.
  virtual std::exception_ptr wrong_size(int from, std::size_t arrived_bytes, std::size_t awaited_bytes) const;

 private:
  // --- Awaiting
  Taken take(const StepHeader& header, std::span<const std::byte> blocks) override;
  void note_kept(const StepHeader& header) override;
  void ask() override;
  void end_with_group() override;
  const Run* as_run() const override { return this; }

  static void on_turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action);
  // For the PE's observer.
  runtime::SpanEvent span() const;
  bool awaits(const StepHeader& header) const;
  // Returns whether the run is over, and perhaps freed.
  bool advance();
  std::vector<std::byte> packed_error() const;
  void send(const Step& step);
  void send_blocks(const Step& step);
  void take_input(const Step& step);
  void fail_without_memory() {
    has_failed_ = is_out_of_memory_ = true;
    error_ = std::current_exception();
  }
  // Returns false if the blocks must come again.
  bool take_arrival(const StepHeader& header, std::span<const std::byte> payload);
  void apply(const Step& step, const StepHeader& header, std::span<const std::byte> blocks);
  void apply_marked(const Step& step, std::span<const std::byte> blocks);
  void hear_of_failure(std::span<const std::byte> packed_error);
  void combine(const Step& step, std::span<std::byte> place, std::span<const std::byte> blocks);
  // Calls use(bytes) for each block that the step moves. REQUIRES: marked.
  template <class Use>
  void for_marked(const Step& step, const Use& use) const;
  std::size_t bytes_of_marked(const Step& step) const;
  std::size_t begin_of(std::size_t block) const {
    return call_.begins == nullptr ? block * call_.block_bytes : call_.begins[block];
  }
  // Of a step. REQUIRES: not marked.
  std::span<std::byte> blocks_of(const Step& step) const {
    const std::size_t begin = begin_of(step.first);
    const std::size_t end =
        call_.ends == nullptr ? begin_of(std::size_t{step.first} + step.count) : call_.ends[step.first];
    return {call_.data + begin, end - begin};
  }
  // Of blocks that begin at the same place at both members: flags for that place.
  std::uint32_t place_mark(const Step& step) const {
    const bool are_placed =
        call_.form == Form::kFewMessages ? call_.kind == Kind::kReduceScatter : call_.kind != Kind::kAlltoall;
    return are_placed ? mark_of(begin_of(step.first)) : 0;
  }
  static std::uint32_t mark_of(std::size_t begin) {
    return static_cast<std::uint32_t>(begin * 0x9e3779b97f4a7c15U >> 32) & StepHeader::kMarks;
  }
  const std::byte* input() const { return call_.input == nullptr ? call_.data : call_.input; }
  std::byte* scratch(std::size_t size_bytes);

  Group& group_;
  Call call_;
  Plan& plan_;
  std::size_t next_ = 0;  // of the plan's steps
  bool has_failed_ = false;
  bool is_out_of_memory_ = false;
  bool is_over_ = false;
  bool is_posted_ = true;  // advance() will be called: by start(), or in a later turn
  std::exception_ptr error_;
  runtime::Work* waiter_ = nullptr;
  Group::Sent sent_;
  std::unique_ptr<std::byte[]> large_scratch_;
  std::size_t large_scratch_bytes_ = 0;
  alignas(16) std::byte scratch_[64];
};

// Awaitable: continues when the run is over. The caller keeps the run.
class Ended : public runtime::ResumeWork {
 public:
  explicit Ended(Run& run) : run_(run) {}
  // A frame that is destroyed while it waits must not be resumed.
  ~Ended() {
    if (handle && !run_.is_over()) run_.set_waiter(nullptr);
  }
  bool await_ready() const { return run_.is_over(); }
  void await_suspend(std::coroutine_handle<> waiting) {
    suspend(waiting, run_.scheduler().meter());
    run_.set_waiter(this);
  }
  void await_resume() const {}

 private:
  Run& run_;
};

}  // namespace weft::collective
