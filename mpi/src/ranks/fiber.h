// Fiber: a function that runs on a stack of its own and switches to the stack of its caller and back. For virtual ranks.
//
// A switch keeps the exception globals of C++, errno and the floating-point control words of both sides. A page without access
// lies below the stack: a stack that overflows ends the process with SIGSEGV.
// Threads: the one that makes the fiber resumes it.
#pragma once

#include <cstddef>
#include <memory>

namespace weft::mpi {

class Fiber {
 public:
  // Whether this build has fibers: it was made with Boost.Context.
  static bool are_available();

  // Where a stack lies. Its size is rounded up to whole pages; only those that are used take memory.
  struct Stack {
    // Null: the fiber allocates it. Else the memory stays the caller's, with a page without access below it. All that the
    // fiber needs then lies in it, so the fiber can move to another process with its stack.
    void* lowest = nullptr;
    std::size_t size_bytes = 0;
  };

  using Body = void (*)(void* context);
  // `body` begins with the first resume() and never returns: it ends with abandon(). Throws Error if the system gives no
  // address space.
  Fiber(const Stack& stack, Body body, void* context);
  // Frees the stack if it has allocated it. The frames on it are given up: no destructor runs.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it suspends.
  void resume();
  // On the fiber's stack: returns from resume().
  void suspend();
  // Suspends the fiber for the last time: it is never resumed.
  [[noreturn]] void abandon();

  // An address below all of the stack that is in use. REQUIRES: the fiber is suspended.
  const void* lowest_in_use() const;

 private:
  struct FiberState;
  struct Delete {
    void operator()(FiberState* state) const;
  };
  std::unique_ptr<FiberState, Delete> state_;
};

}  // namespace weft::mpi
