// created(): what must wait before an element is ready.
//
//   struct Block : weft::Chare<Block> {
//     explicit Block(int size);
//     weft::Task<> created() { total_ = co_await allreduce(size_, weft::Reducer::kSum); }
//   };
//
// A public method `weft::Task<> created()` runs once on each element, right after the constructors of this PE, before any other
// method of the element. Calls to the element wait until it has ended, and so does the creation where it is awaited. It does
// not run after a move, and not when a checkpoint is restored. An exception that leaves it fails the creation as one of the
// constructor does. See docs/collections.md.
//
// Threads: one PE's.
#pragma once

#include <concepts>
#include <exception>
#include <type_traits>

#include "weft/chare/chare.h"
#include "weft/runtime/task.h"
#include "weft/runtime/work_meter.h"

namespace weft::chare::created_detail {

template <class T>
concept HasCreated = requires(T& chare) {
  { chare.created() } -> std::same_as<runtime::Task<>>;
};
// Whether T has a member of that name, also one that is not public: then the name is ambiguous in Both.
struct Named {
  int created;
};
template <class T>
struct Both : T, Named {};
template <class T>
constexpr bool names_created() {
  if constexpr (requires { requires std::is_member_object_pointer_v<decltype(&T::created)>; }) return false;
  if constexpr (std::is_final_v<T>) {
    return requires { &T::created; };
  } else {
    return !requires { &Both<T>::created; };
  }
}
// A type that stands for the classes of another language.
template <class T>
concept BeginsItself = requires(ChareBase& chare) {
  { T::begin_created(chare) } -> std::same_as<void>;
};

template <class T>
class Run final : public runtime::DetachedTask {
 public:
  static void begin(ChareBase& base) {
    if (base.load() == nullptr) return start(base);
    const runtime::WorkMeter::Span span(base.runtime().meter(), *base.load());
    start(base);
  }

 private:
  explicit Run(ChareBase& base) : base_(base) {}

  static void start(ChareBase& base) {
    auto* const run = new Run(base);
    try {
      run->coroutine_ = static_cast<T&>(base).created().release();
    } catch (...) {
      delete run;
      return base.collection().chares().created_ended(base, std::current_exception());
    }
    run->coroutine_.promise().detached = run;
    base.coroutine_started();
    base.runtime().start_detached(run, run->coroutine_);
  }
  void finished() noexcept override {
    const std::exception_ptr error = coroutine_.promise().error;
    ChareBase& base = base_;
    abandon();  // what the frame holds may use the element
    base.coroutine_ended();
    base.collection().chares().created_ended(base, error);
  }
  void abandon() noexcept override {
    coroutine_.destroy();
    delete this;
  }

  ChareBase& base_;
  typename runtime::Task<>::Handle coroutine_;
};

}  // namespace weft::chare::created_detail
