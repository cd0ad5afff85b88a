// weft::FutureList<T>: a future of several values, which are set by any holders of copies, on any PE.
//
//   weft::FutureList<int> squares(runtime, 4);
//   workers.send<&Worker::work>(squares);             // each of the four calls squares.set(value)
//   std::vector<int> all = co_await squares;          // in the order of arrival
//
// Like weft::Future it belongs to the PE that made it, and is awaited there or in an element that has moved with it; its copies
// are cheap and share one state.
// Threads: one PE's thread.
#pragma once

#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/runtime/future.h"

namespace weft::runtime {

template <class T>
class [[nodiscard]] FutureList {
  static_assert(std::is_copy_constructible_v<T>, "each await of a FutureList copies its values");

  struct ListState final : FutureState {
    using FutureState::FutureState;
    void expect(std::uint64_t count) {
      expect_values(count);
      if (count == 0) mark_ready();
    }
    void set(T value) {
      if (!accept()) return;
      values.push_back(std::move(value));
      if (!expects_more()) mark_ready();
    }
    void set_packed(Pup& p) override {
      T value{};
      p | value;
      set(std::move(value));
    }
    // A copy gets all values at once.
    void pup_value(Pup& p) override {
      if (!p.is_unpacking()) {
        p | std::as_const(values);
        return;
      }
      p | values;
      mark_ready();
    }
    std::vector<T> values;
  };

 public:
  using Value = std::vector<T>;
  // The type that set() takes, and that each reduction delivers whose target is this list.
  using Taken = T;

  // Holds no future. Only assignment and pup() may be used.
  FutureList() = default;
  // Ready when `count` values have been set, at once if `count` is 0; or with the first error. What is set after an error is
  // dropped.
  FutureList(Messenger& messenger, std::uint64_t count) : FutureList(new ListState(messenger)) {
    state_->expect(count);
  }

  bool is_ready() const { return state_->is_ready(); }
  FutureState* state() const { return state_.get(); }

  // Adds a value, here or on the PE that the future belongs to. A value more than it was made for is an Error.
  void set(std::type_identity_t<T> value) const {
    const FutureAddress to = state_->remote();
    if (to.id == 0) return state_->set(std::move(value));
    Messenger& messenger = state_->messenger();
    send_future_message(messenger, to.pe,
                        Message::pack(messenger, kFutureSetHandler, FutureSetHeader{to.id, 0}, value));
  }
  void set_error(std::exception_ptr error) const { state_->set_error(std::move(error)); }

  // Returns the values, or throws the first error. REQUIRES: is_ready().
  std::vector<T> get() const {
    if (state_->error()) std::rethrow_exception(state_->error());
    return state_->values;
  }

  auto operator co_await() const { return FutureAwaiter<FutureList>(*this); }

  void pup(Pup& p) {
    if (p.is_unpacking()) {
      state_ = unpack_future<ListState>(messenger_of<T>(p), p);
    } else {
      pack_future(p, state_.get());
    }
  }

 private:
  explicit FutureList(ListState* state) : state_(state) {}

  FutureShare<ListState> state_;
};

}  // namespace weft::runtime
