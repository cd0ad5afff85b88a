// The run of an entry method, as far as it does not depend on the method: this is compiled once, or once for the types of the
// arguments and of the result, and not for each entry method. For entry.h; programs do not name this.
//
// Threads: one PE's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/chare/argument.h"
#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/outcome.h"
#include "weft/runtime/task.h"

namespace weft::chare::entry_detail {

// How the arguments of a call travel. With a post entry method, vectors stay in the message.
template <class ArgumentTypes, bool kHasPost>
struct Packing {
  using Arguments = ArgumentTypes;
  static constexpr bool kHasPayload = payload_detail::kHasPayload<Arguments>;
  static constexpr bool kBlocksTravelOutOfBand = !kHasPost && argument_detail::kHasBlock<Arguments>;
  static constexpr bool kIsPlaced = kHasPayload || kBlocksTravelOutOfBand;
};

// Runs a method. `arguments` are those that its entry unpacks.
using Body = void (*)(ChareBase& chare, void* arguments, const ReplyTo& reply);

// Calls `body` inside a span of the element's load, if it is measured, and between two reports to the PE's observer, if it has one.
// A coroutine reports its own begin and end: then `reports` is false.
[[gnu::noinline]] void run_watched(ChareBase& chare, const EntryInfo& entry, bool reports, Body body,
                                   void* arguments, const ReplyTo& reply);
// Reports to the PE's observer, if it has one. `run` is the same at begin and end.
[[gnu::cold, gnu::noinline]] void report_begin(const ChareBase& chare, const EntryInfo& entry,
                                               const void* run);
[[gnu::cold, gnu::noinline]] void report_end(const ChareBase& chare, const EntryInfo& entry, const void* run);
// Its coroutine has run to its first wait or its end.
[[gnu::cold, gnu::noinline]] void report_suspended(const runtime::Runtime& runtime, const void* run);

// The coroutine of an entry method, which has been called and has not ended.
class RunningCoroutine : public runtime::DetachedTask {
 public:
  RunningCoroutine(ChareBase& chare, const EntryInfo& entry, const ReplyTo& reply)
      : chare_(chare), entry_(entry), reply_(reply) {}
  void finished() noexcept final;
  void list_waits(runtime::WaitList& waits) const final;

 protected:
  // Sends the result, if there is one and the caller wants it. Called when the coroutine has ended.
  virtual void conclude() noexcept = 0;

  void begin(runtime::PromiseBase& promise, std::coroutine_handle<> coroutine);
  // The call itself has thrown.
  void fail_to_begin(const std::exception_ptr& error);

  ChareBase& chare_;
  const EntryInfo& entry_;
  ReplyTo reply_;
  runtime::PromiseBase* promise_ = nullptr;
};

// Keeps the arguments, since the method may take them by reference.
template <class Arguments, class Value>
class Running final : public RunningCoroutine {
  using Handle = typename runtime::Task<Value>::Handle;

 public:
  static void start(ChareBase& chare, const EntryInfo& entry, Arguments&& arguments, const ReplyTo& reply,
                    Handle (*call)(ChareBase&, Arguments&)) {
    auto* const running = new (chare.runtime().pool().allocate(sizeof(Running)))
        Running(chare, entry, std::move(arguments), reply);
    if (chare.runtime().observer() != nullptr) [[unlikely]]
      return running->start_observed(call);
    running->start(call);
  }

  void abandon() noexcept override {
    if (coroutine_) coroutine_.destroy();
    runtime::BlockPool& pool = chare_.runtime().pool();
    this->~Running();
    pool.deallocate(this, sizeof(Running));
  }

 private:
  Running(ChareBase& chare, const EntryInfo& entry, Arguments&& arguments, const ReplyTo& reply)
      : RunningCoroutine(chare, entry, reply), arguments_(std::move(arguments)) {}

  [[gnu::always_inline]] void start(Handle (*call)(ChareBase&, Arguments&)) {
    try {
      coroutine_ = call(chare_, arguments_);
    } catch (...) {
      return fail_to_begin(std::current_exception());
    }
    begin(coroutine_.promise(), coroutine_);
  }
  [[gnu::cold, gnu::noinline]] void start_observed(Handle (*call)(ChareBase&, Arguments&)) {
    runtime::Runtime& runtime = chare_.runtime();
    report_begin(chare_, entry_, this);
    const void* const outer = runtime.meter().exchange_run(this);
    start(call);
    runtime.meter().exchange_run(outer);
    report_suspended(runtime, this);  // it may have been destroyed
  }

  void conclude() noexcept override {
    if (reply_.kind != ReplyTo::Kind::kNone && !promise_->error) {
      try {
        if constexpr (std::is_void_v<Value>) {
          send_nothing(chare_, reply_);
        } else {
          Value value = coroutine_.promise().take();
          send_value(chare_, reply_, value_to_send(value));
        }
      } catch (...) {
        send_error(chare_, reply_, entry_, std::current_exception());
      }
    }
    if constexpr (argument_detail::kHasBlock<Arguments>) {
      argument_detail::recycle(chare_.runtime(), arguments_);
    }
  }

  Arguments arguments_;
  Handle coroutine_;
};

// The arguments of a call with out-of-band buffers: unpacked before the buffers land.
template <class Arguments>
struct Placed {
  static constexpr std::size_t kCount = std::tuple_size_v<Arguments>;

  Arguments arguments{};
  // The buffers of payloads and views.
  std::array<std::uint32_t, kCount> which{};

  static std::shared_ptr<Placed> unpack(Pup& p, runtime::Runtime& runtime,
                                        std::span<runtime::ReceiveBuffer> receive_buffers) {
    auto placed = std::make_shared<Placed>();
    placed->which.fill(argument_detail::kNoBuffer);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (argument_detail::unpack_before_landing(p, std::get<I>(placed->arguments), placed->which[I], runtime,
                                              receive_buffers),
       ...);
    }(std::make_index_sequence<kCount>());
    argument_detail::expect_distinct(placed->which, receive_buffers);
    return placed;
  }
  // EntryInfo::place of a method without a post entry method.
  static bool place(ChareBase& chare, Pup& p, const ReplyTo&,
                    std::span<runtime::ReceiveBuffer> receive_buffers, std::shared_ptr<void>& kept) {
    kept = unpack(p, chare.runtime(), receive_buffers);
    return true;
  }
  void take_landed(runtime::Message& message) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (argument_detail::take_after_landing(message, std::get<I>(arguments), which[I]), ...);
    }(std::make_index_sequence<kCount>());
  }
};

}  // namespace weft::chare::entry_detail
