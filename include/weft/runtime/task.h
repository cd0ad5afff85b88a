// weft::Task<T>, the coroutine type of entry methods and of main.
//
// A Task starts when it is awaited, or when the runtime starts it as an entry method, and runs on its PE's
// thread. An exception that leaves it is thrown from the co_await of its awaiting caller. Destroying a Task
// that has not finished destroys its frame.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace weft::runtime {

class DetachedTask;
class WaitList;

class PromiseBase {
 public:
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      return static_cast<PromiseBase&>(handle.promise()).finish();
    }
    void await_resume() noexcept {}
  };

  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }

  // When this coroutine ends, the awaiting coroutine continues. Without one, `detached` is notified.
  std::coroutine_handle<> continuation;
  DetachedTask* detached = nullptr;
  std::exception_ptr error;

 private:
  std::coroutine_handle<> finish() noexcept;
};

// A coroutine without an awaiting caller, and the function to call at its end. The runtime keeps a list of
// them and destroys those that are still suspended when it closes.
class DetachedTask {
 public:
  DetachedTask() = default;
  DetachedTask(const DetachedTask&) = delete;
  DetachedTask& operator=(const DetachedTask&) = delete;
  virtual ~DetachedTask() {
    if (previous_ != nullptr) *previous_ = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }

  // Called once, after the coroutine has ended; destroys the coroutine and itself.
  virtual void finished() noexcept = 0;
  // Called instead if the runtime closes first; destroys the coroutine and itself, without other effects.
  virtual void abandon() noexcept = 0;
  // Adds what the coroutine waits for, for a report. Called while it is suspended. By default it adds nothing.
  virtual void list_waits(WaitList& waits) const { static_cast<void>(waits); }

  void link(DetachedTask*& head) {
    previous_ = &head;
    next_ = head;
    if (next_ != nullptr) next_->previous_ = &next_;
    head = this;
  }
  const DetachedTask* next() const { return next_; }

 private:
  DetachedTask* next_ = nullptr;
  DetachedTask** previous_ = nullptr;
};

inline std::coroutine_handle<> PromiseBase::finish() noexcept {
  if (continuation) return continuation;
  if (detached != nullptr) detached->finished();
  return std::noop_coroutine();
}

template <class T>
class Promise : public PromiseBase {
 public:
  template <class U>
  void return_value(U&& value) {
    result_.emplace(std::forward<U>(value));
  }
  T take() {
    if (error) std::rethrow_exception(error);
    return std::move(*result_);
  }

 private:
  std::optional<T> result_;
};

template <>
class Promise<void> : public PromiseBase {
 public:
  void return_void() {}
  void take() {
    if (error) std::rethrow_exception(error);
  }
};

template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : Promise<T> {
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
  };
  using Handle = std::coroutine_handle<promise_type>;
  using Value = T;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  auto operator co_await() && noexcept {
    struct TaskAwaiter {
      Handle handle;
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> continuation) noexcept {
        handle.promise().continuation = continuation;
        return handle;
      }
      T await_resume() { return handle.promise().take(); }
    };
    return TaskAwaiter{handle_};
  }
  auto operator co_await() & noexcept { return std::move(*this).operator co_await(); }

  // Gives the frame to the caller, the runtime.
  Handle release() { return std::exchange(handle_, nullptr); }

 private:
  explicit Task(Handle handle) : handle_(handle) {}

  Handle handle_;
};

// `Value` is the type that a caller gets in the end from a function that returns T: the value of a Task, else T itself.
template <class T>
struct TaskValue {
  static constexpr bool kIsTask = false;
  using Value = T;
};
template <class T>
struct TaskValue<Task<T>> {
  static constexpr bool kIsTask = true;
  using Value = T;
};

}  // namespace weft::runtime
