#include "ranks/fiber.h"

#include "weft/base/error.h"

#ifdef WEFT_VIRTUAL_RANKS

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/stack_context.hpp>

#include "base/format.h"

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_TELLS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_TELLS_SANITIZER 1
#endif
#endif
#ifdef WEFT_TELLS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace weft::mpi {

namespace {

// The globals that the C++ ABI keeps for each thread: exceptions that are being handled, and the number of those that are thrown.
struct ExceptionGlobals {
  void* caught = nullptr;
  unsigned int num_uncaught = 0;
};
ExceptionGlobals& exception_globals() {
  return *reinterpret_cast<ExceptionGlobals*>(abi::__cxa_get_globals());
}

// The destructor of a suspended boost::context::fiber would unwind its stack, so none runs.
union SuspendedSide {
  SuspendedSide() : fiber() {}
  ~SuspendedSide() {}
  SuspendedSide(const SuspendedSide&) = delete;
  SuspendedSide& operator=(const SuspendedSide&) = delete;
  boost::context::fiber fiber;
};

// The stack belongs to the Fiber.
struct NoAllocator {
  void deallocate(boost::context::stack_context& /*stack*/) {}
};

// The sanitizer must know on which stack the thread is.
struct StackRange {
  const void* bottom = nullptr;
  std::size_t size_bytes = 0;
};
void begin_switch([[maybe_unused]] void** kept, [[maybe_unused]] const StackRange& to) {
#ifdef WEFT_TELLS_SANITIZER
  __sanitizer_start_switch_fiber(kept, to.bottom, to.size_bytes);
#endif
}
// `from`: becomes the stack that the thread has left; may be null.
void end_switch([[maybe_unused]] void* kept, [[maybe_unused]] StackRange* from) {
#ifdef WEFT_TELLS_SANITIZER
  __sanitizer_finish_switch_fiber(kept, from == nullptr ? nullptr : &from->bottom,
                                  from == nullptr ? nullptr : &from->size_bytes);
#endif
}

// The value that functions with a stack protector keep in their frames. The C library draws it at the start of a process, so the frames of
// a fiber that moves need theirs.
std::uintptr_t exchange_stack_guard([[maybe_unused]] std::uintptr_t guard) {
#ifdef __x86_64__
  std::uintptr_t before = 0;
  asm volatile("movq %%fs:0x28, %0\n\tmovq %1, %%fs:0x28" : "=&r"(before) : "r"(guard) : "memory");
  return before;
#else
  return 0;
#endif
}
std::uintptr_t stack_guard() {
  std::uintptr_t guard = 0;
#ifdef __x86_64__
  asm volatile("movq %%fs:0x28, %0" : "=r"(guard));
#endif
  return guard;
}

// Out of line: the compiler may keep the address of errno, and it is another one after a move.
[[gnu::noinline]] void set_errno(int error) { errno = error; }

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

struct Fiber::FiberState {
  // The bytes that a FiberState takes at the top of a stack that its caller has allocated.
  static constexpr std::size_t kStateBytes = 512;

  FiberState(const Stack& wanted, Body body_in, void* context_in) : body(body_in), context(context_in) {
    if (wanted.lowest != nullptr) {
      own = {wanted.lowest, wanted.size_bytes - kStateBytes};
    } else {
      allocate(wanted.size_bytes);
    }
    boost::context::stack_context stack;
    stack.sp = static_cast<std::byte*>(const_cast<void*>(own.bottom)) + own.size_bytes;
    stack.size = own.size_bytes;
    rank_side.fiber =
        boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                              NoAllocator(), [this](boost::context::fiber&& caller) {
                                scheduler_side.fiber = std::move(caller);
                                end_switch(nullptr, &scheduler_stack);
                                body(context);
                                return std::move(scheduler_side.fiber);  // not reached
                              });
  }
  ~FiberState() {
    if (mapped != nullptr) munmap(mapped, mapped_bytes);
  }
  FiberState(const FiberState&) = delete;
  FiberState& operator=(const FiberState&) = delete;

  void allocate(std::size_t size_bytes) {
    const std::size_t page = page_bytes();
    mapped_bytes = (size_bytes + page - 1) / page * page + page;
    mapped = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapped == MAP_FAILED || mprotect(mapped, page, PROT_NONE) != 0) {
      throw base::Error(
          base::StatusCode::kOutOfMemory,
          base::format("no stack of {} bytes for an MPI rank: error {}; give a smaller stack or "
                       "fewer ranks per process",
                       size_bytes, errno));
    }
    own = {static_cast<std::byte*>(mapped) + page, mapped_bytes - page};
  }

  Body body;
  void* context;
  void* mapped = nullptr;
  std::size_t mapped_bytes = 0;
  SuspendedSide rank_side;
  SuspendedSide scheduler_side;
  ExceptionGlobals exceptions;
  std::uintptr_t guard = stack_guard();
  const void* suspended_at = nullptr;
  StackRange own;
  StackRange scheduler_stack;
  void* kept = nullptr;  // of the sanitizer, for this stack
};

bool Fiber::are_available() { return true; }

Fiber::Fiber(const Stack& stack, Body body, void* context) {
  void* place = nullptr;
  if (stack.lowest != nullptr)
    place = static_cast<std::byte*>(stack.lowest) + stack.size_bytes - FiberState::kStateBytes;
  state_.reset(place == nullptr ? new FiberState(stack, body, context)
                                : new (place) FiberState(stack, body, context));
}

void Fiber::Delete::operator()(FiberState* state) const {
  if (state->mapped == nullptr) {
    std::destroy_at(state);
  } else {
    delete state;
  }
}

// Below the frame of suspend() are those of Boost, and the registers.
const void* Fiber::lowest_in_use() const {
  constexpr std::size_t kBelowFrame = 4096;
  const auto* const frame = static_cast<const std::byte*>(state_->suspended_at);
  const auto* const bottom = static_cast<const std::byte*>(state_->own.bottom);
  return frame - bottom > static_cast<std::ptrdiff_t>(kBelowFrame) ? frame - kBelowFrame : bottom;
}

Fiber::~Fiber() = default;

void Fiber::resume() {
  FiberState& state = *state_;
  ExceptionGlobals& globals = exception_globals();
  const ExceptionGlobals of_scheduler = std::exchange(globals, state.exceptions);
  const std::uintptr_t guard_of_scheduler = exchange_stack_guard(state.guard);
  void* kept = nullptr;
  begin_switch(&kept, state.own);
  state.rank_side.fiber = std::move(state.rank_side.fiber).resume();
  end_switch(kept, nullptr);
  state.guard = exchange_stack_guard(guard_of_scheduler);
  state.exceptions = std::exchange(globals, of_scheduler);
}

void Fiber::suspend() {
  FiberState& state = *state_;
  const int error = errno;
  state.suspended_at = &error;
  begin_switch(&state.kept, state.scheduler_stack);
  state.scheduler_side.fiber = std::move(state.scheduler_side.fiber).resume();
  end_switch(state.kept, &state.scheduler_stack);
  set_errno(error);
}

void Fiber::abandon() {
  FiberState& state = *state_;
  begin_switch(nullptr, state.scheduler_stack);
  state.scheduler_side.fiber = std::move(state.scheduler_side.fiber).resume();
  std::abort();  // nothing resumes it
}

}  // namespace weft::mpi

#else

#include <cstdlib>

namespace weft::mpi {

struct Fiber::FiberState {};

void Fiber::Delete::operator()(FiberState* state) const { delete state; }
const void* Fiber::lowest_in_use() const { return nullptr; }

bool Fiber::are_available() { return false; }
Fiber::Fiber(const Stack& /*stack*/, Body /*body*/, void* /*context*/) {
  throw base::Error(base::StatusCode::kUnsupported,
                    "this build of Weft has no virtual ranks, because Boost.Context was not found");
}
Fiber::~Fiber() = default;
void Fiber::resume() {}
void Fiber::suspend() {}
void Fiber::abandon() { std::abort(); }

}  // namespace weft::mpi

#endif
