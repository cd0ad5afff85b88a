// weft::Future<T>: a value that will be set once, through any copy of the future, on any PE.
//
// A future belongs to the PE that made it. Its copies are cheap and share one state. A copy that travels in a
// message can be set on the PE where it arrives; the value travels back. Only the future's own PE can await
// it or give it a callback, with one exception: a copy in the state of an element that moves can be awaited on the
// element's new PE, see src/runtime/future_table.h.
//
// Threads: one PE's thread.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/pup.h"
#include "weft/runtime/message.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/remote_error.h"
#include "weft/runtime/task.h"
#include "weft/runtime/work.h"

namespace weft::runtime {

// Names a future of any PE, for setting it from another one.
struct FutureAddress {
  std::uint32_t pe = 0;
  std::uint64_t id = 0;  // 0: nowhere
  bool operator==(const FutureAddress&) const = default;
};

// The bytes that a copy of a future carries to another PE.
struct FutureHandle {
  enum class Kind : std::uint8_t {
    kSetter,   // it can be set where it arrives
    kLinked,   // and awaited: the PE `link.pe` sends the value, which it knows by the number `link.id`
    kOutcome,  // and awaited: the value or the error follows, see FutureState::pack_outcome()
  };
  FutureAddress future;
  Kind kind = Kind::kSetter;
  FutureAddress link;
  void pup(Pup& p);
};

class FutureState {
 public:
  explicit FutureState(Messenger& messenger) : messenger_(messenger) {}
  FutureState(const FutureState&) = delete;
  FutureState& operator=(const FutureState&) = delete;
  virtual ~FutureState() = default;

  void acquire() { ++references_; }
  void release() {
    --references_;
    if (references_ == 0) {
      if (is_mirror_) [[unlikely]]
        forget_mirror();
      delete this;
    } else if (references_ == 1 && ready_ && address_.id != 0 && !expects_more()) {
      forget_export();
    }
  }

  Messenger& messenger() const { return messenger_; }
  Runtime& runtime() const { return messenger_.runtime(); }
  bool is_ready() const { return ready_; }
  const std::exception_ptr& error() const { return error_; }

  // Sets the value from its packed bytes.
  virtual void set_packed(Pup& p) = 0;
  void set_error(std::exception_ptr error);
  // A held future that is set becomes ready only when end_hold() is called. REQUIRES: the future belongs to
  // this PE, is not set, and is not held.
  void hold() { held_ = true; }
  void end_hold();
  // Makes `error` the result, also if the future is set already. REQUIRES: held.
  void replace_by_error(std::exception_ptr error);
  bool is_set() const { return set_; }

  // Makes it a future of `count` values: it is ready with the last one, or with the first error. What is set after an error
  // is dropped. REQUIRES: nothing was set. If `count` is 0, the caller marks it as ready.
  void expect_values(std::uint64_t count) {
    collects_ = true;
    values_left_ = count;
  }
  bool collects() const { return collects_; }
  // Whether a future of several values waits for some, which may also come after an error.
  bool expects_more() const { return values_left_ != 0; }

  // Posts `work` when the future is ready, at once if it is. Throws Error if the future belongs to another PE and is no mirror.
  void when_ready(Work* work);
  // Undoes when_ready() for work that has not been posted.
  void forget(Work* work);

  // The id is not 0 if the future belongs to another PE.
  FutureAddress remote() const { return remote_; }
  // The address by which other PEs can set it. The first call enters it in the PE's FutureTable.
  FutureAddress address();
  // Whether address() was called: other PEs may set it.
  bool is_exported() const { return address_.id != 0; }
  // Names the code that set the future last, for the error of a second set(). Empty if it is not known.
  virtual std::string setter() const { return {}; }
  // The handle for a copy that is packed now. While an element is packed for a move, the copy can be awaited where it arrives.
  FutureHandle handle();
  // Whether it is the copy of a future of another PE, and gets its value.
  bool is_mirror() const { return is_mirror_; }

  // --- The value, or the list of all values, on its way to a copy
  // The error or the value, and which of them it is. REQUIRES: sizing or packing, is_ready().
  void pack_outcome(Pup& p);
  // Sets what pack_outcome() has packed. REQUIRES: it is not set.
  void unpack_outcome(Pup& p);
  // Sends what pack_outcome() packs to the PE's copy of `future`.
  virtual void send_outcome(std::uint32_t to_pe, FutureAddress future);

 private:
  friend class FutureTable;
  // The last share of a mirror is gone.
  [[gnu::cold]] void forget_mirror();
  // The future is set, and only the PE's FutureTable holds it: the table releases its share.
  void forget_export();
  // forget() for work that is not among the first waiters. The table notes their places: the cost of each is the same.
  [[gnu::cold]] void forget_of_many(Work* work);
  // `work` follows the last waiter, and the table keeps the places.
  [[gnu::cold]] void note_place(Work* work);
  // Takes `work`, which follows `previous` or is the first, out of the list of waiters.
  void unlink(Work* previous, const Work* work);

 protected:
  // Throws if it was set before.
  void expect_unset() const;
  // Counts a value that is to be stored. Returns false if it is to be dropped. Throws if all values were set before.
  bool accept();
  // Marks it as set. Unless it is held, it is ready, its waiters are posted, and copies get the value.
  void mark_ready();
  // Makes `error` the result, on this PE. REQUIRES: it is not set.
  void end_with(std::exception_ptr error);
  // Packs the value, which stays, or unpacks it and calls mark_ready(). REQUIRES: no error; when packing, has_value().
  virtual void pup_value(Pup& p) = 0;
  // False if the value was taken, see Future::get(). REQUIRES: ready without an error.
  virtual bool has_value() const { return true; }

  FutureAddress remote_;

 private:
  template <class T>
  friend class Future;

  Messenger& messenger_;
  std::uint32_t references_ = 0;
  bool ready_ = false;
  bool set_ = false;
  bool held_ = false;
  bool collects_ = false;
  bool is_mirror_ = false;  // the PE's FutureTable knows it by remote_
  // What the PE's FutureTable keeps for it: shares for copies that wait for the value, and the places of many waiters in the list.
  static constexpr std::uint8_t kKeepsLinks = 1;
  static constexpr std::uint8_t kKeepsPlaces = 2;
  std::uint8_t table_keeps_ = 0;
  std::uint64_t values_left_ = 0;  // of a future that collects
  std::exception_ptr error_;
  // In order of arrival. last_waiter_ is valid only if waiters_ is not null.
  Work* waiters_ = nullptr;
  Work* last_waiter_ = nullptr;
  FutureAddress address_;
};

// Throws: the value is move-only and was already taken.
[[noreturn]] void throw_taken();

// A holder's share of a state, or of none.
template <class State>
class FutureShare {
 public:
  FutureShare() = default;
  explicit FutureShare(State* state) : state_(state) {
    if (state_ != nullptr) state_->acquire();
  }
  FutureShare(const FutureShare& other) : FutureShare(other.state_) {}
  FutureShare(FutureShare&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  FutureShare& operator=(FutureShare other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~FutureShare() {
    if (state_ != nullptr) state_->release();
  }

  State* get() const { return state_; }
  State* operator->() const { return state_; }

 private:
  State* state_ = nullptr;
};

// The state of the future on this PE, if it is known; else null. Throws Error(kCorrupt) if no PE of the job can have sent
// the handle.
FutureState* find_future(Messenger& messenger, const FutureHandle& handle);
// `state` is new: makes it the copy of that future. `other_type`: find_future() has found one of another type.
void bind_future(FutureState& state, const FutureHandle& handle, bool other_type);
// A linked handle has arrived, and `state` stands for it: a second link is given back.
void accept_link(FutureState& state, const FutureHandle& handle);

// Unpacks a handle: finds or makes the state. None for an empty future.
template <class State>
FutureShare<State> unpack_future(Messenger& messenger, Pup& p) {
  FutureHandle handle;
  p | handle;
  if (handle.future.id == 0) return {};
  FutureState* const known = find_future(messenger, handle);
  FutureShare<State> share(dynamic_cast<State*>(known));
  if (share.get() == nullptr) {
    share = FutureShare<State>(new State(messenger));
    bind_future(*share.get(), handle, known != nullptr);
  }
  if (handle.kind == FutureHandle::Kind::kLinked) accept_link(*share.get(), handle);
  if (handle.kind == FutureHandle::Kind::kOutcome) {
    const bool is_wanted = share->is_mirror() && !share->is_ready();
    const FutureShare<State> into = is_wanted ? share : FutureShare<State>(new State(messenger));
    into->unpack_outcome(p);
  }
  return share;
}

// Awaits a copy of a Future or FutureList, and resumes with the result of its get().
template <class AnyFuture>
class FutureAwaiter : private ResumeWork {
 public:
  explicit FutureAwaiter(AnyFuture future) : future_(std::move(future)) {}
  // A frame that is destroyed while it waits must not be resumed.
  ~FutureAwaiter() {
    if (handle && !future_.is_ready()) future_.state()->forget(this);
  }
  FutureAwaiter(const FutureAwaiter&) = delete;
  FutureAwaiter& operator=(const FutureAwaiter&) = delete;

  bool await_ready() const { return future_.is_ready() && !future_.state()->messenger().spend_ready_await(); }
  void await_suspend(std::coroutine_handle<> waiting) {
    suspend(waiting, future_.state()->messenger().meter());
    if (future_.is_ready()) {
      future_.state()->messenger().post_for_next_turn(this);
    } else {
      future_.state()->when_ready(this);
    }
  }
  auto await_resume() const { return future_.get(); }

 private:
  AnyFuture future_;
};

template <class T = void>
class [[nodiscard]] Future {
  using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  struct ValueState final : FutureState {
    using FutureState::FutureState;
    void set(Stored value) {
      expect_unset();
      result.emplace(std::move(value));
      mark_ready();
    }
    void set_packed(Pup& p) override {
      Stored value{};
      if constexpr (!std::is_void_v<T>) p | value;
      set(std::move(value));
    }
    void pup_value(Pup& p) override {
      if (p.is_unpacking()) return set_packed(p);
      if constexpr (!std::is_void_v<T>) p | std::as_const(*result);
    }
    bool has_value() const override { return result.has_value(); }
    std::optional<Stored> result;
  };

 public:
  using Value = T;
  // The type that set() takes, and that a reduction delivers whose target is this future.
  using Taken = T;

  // Holds no future. Only assignment and pup() may be used.
  Future() = default;
  explicit Future(Messenger& messenger) : state_(new ValueState(messenger)) {}

  bool is_ready() const { return state_->is_ready(); }
  FutureState* state() const { return state_.get(); }

  // Sets it, here or on the PE it belongs to. A second set is an Error.
  template <class U = T>
    requires(!std::is_void_v<U>)
  void set(std::type_identity_t<U> value) const {
    if (state_->remote().id != 0) {
      send_value(&value);
    } else {
      state_->set(std::move(value));
    }
  }
  void set() const
    requires std::is_void_v<T>
  {
    if (state_->remote().id != 0) {
      std::monostate nothing;
      send_value(&nothing);
    } else {
      state_->set({});
    }
  }
  void set_error(std::exception_ptr error) const { state_->set_error(std::move(error)); }

  // Returns the value. Throws the exception of set_error(), if it was called. A move-only value is moved out:
  // a second get() throws Error. REQUIRES: is_ready().
  T get() const {
    if (state_->error()) std::rethrow_exception(state_->error());
    if constexpr (std::is_void_v<T>) {
      return;
    } else if constexpr (std::is_copy_constructible_v<T>) {
      return *state_->result;
    } else {
      if (!state_->result) throw_taken();
      T value = std::move(*state_->result);
      state_->result.reset();
      return value;
    }
  }

  // Calls `callback(future)` from the scheduler once the future is ready.
  template <class Callback>
  void then(Callback callback) const {
    // The runtime lists it and abandons it when it closes: callback and future may hold each other.
    struct ThenWork final : Work, DetachedTask {
      ThenWork(Future future_in, Callback callback_in)
          : Work(&ThenWork::call), future(std::move(future_in)), callback(std::move(callback_in)) {}
      void finished() noexcept override {}
      void abandon() noexcept override {
        future.state()->forget(this);
        delete this;
      }
      static void call(Work* self, Runtime&, WorkAction action) {
        std::unique_ptr<ThenWork> work(static_cast<ThenWork*>(self));
        if (action == WorkAction::kRun) work->callback(work->future);
      }
      Future future;
      Callback callback;
    };
    auto* work = new ThenWork(*this, std::move(callback));
    state_->messenger().list_pending(work);
    state_->when_ready(work);
  }

  auto operator co_await() const { return FutureAwaiter<Future>(*this); }

  // The future of an address from FutureState::address() on any PE. For id 0 the result holds no future.
  static Future at(Messenger& messenger, FutureAddress address);
  void pup(Pup& p);

 private:
  explicit Future(ValueState* state) : state_(state) {}
  void send_value(const Stored* value) const;

  FutureShare<ValueState> state_;
};

// In front of the value, or of the packed error, in the message that sets a future of another PE.
struct FutureSetHeader {
  // Values of `failed`: the result is a value, an error, or an error that comes to nothing if the future is set.
  static constexpr std::uint8_t kValue = 0;
  static constexpr std::uint8_t kError = 1;
  static constexpr std::uint8_t kErrorUnlessSet = 2;

  std::uint64_t id = 0;
  std::uint8_t failed = kValue;
  void pup(Pup& p) { p | id | failed; }
};
void send_future_message(Messenger& messenger, std::uint32_t pe, MessagePtr message);
// The message that sets a future to `error`. REQUIRES: header.failed is not kValue.
MessagePtr pack_future_error(Messenger& messenger, FutureSetHeader header, const std::exception_ptr& error);
// Null if the future was set and has no holder on this PE any more.
FutureState* find_exported_future(Messenger& messenger, std::uint64_t id);
// Sizes or packs the handle, and the outcome if it has one. `state` may be null.
void pack_future(Pup& p, FutureState* state);
inline constexpr HandlerId kFutureSetHandler = 0;

template <class T>
void Future<T>::send_value(const Stored* value) const {
  FutureAddress to = state_->remote();
  FutureSetHeader header{to.id, 0};
  send_future_message(state_->messenger(), to.pe,
                      Message::pack(state_->messenger(), kFutureSetHandler, header, *value));
}

// The messenger of the runtime that is the context of `p`. A template, so that Runtime must be complete only
// where it is instantiated.
template <class T>
Messenger& messenger_of(Pup& p) {
  using Whole = std::conditional_t<std::is_same_v<T, Runtime>, T, Runtime>;
  return *static_cast<Whole*>(p.context());
}

template <class T>
Future<T> Future<T>::at(Messenger& messenger, FutureAddress address) {
  Future future;
  if (address.id == 0) return future;
  const FutureHandle handle{address, FutureHandle::Kind::kSetter, {}};
  FutureState* const known = find_future(messenger, handle);
  future = Future(dynamic_cast<ValueState*>(known));
  if (future.state_.get() != nullptr) return future;
  future = Future(messenger);
  bind_future(*future.state_.get(), handle, known != nullptr);
  return future;
}

template <class T>
void Future<T>::pup(Pup& p) {
  if (p.is_unpacking()) {
    state_ = unpack_future<ValueState>(messenger_of<T>(p), p);
  } else {
    pack_future(p, state_.get());
  }
}

}  // namespace weft::runtime
