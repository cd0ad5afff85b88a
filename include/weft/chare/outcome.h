// The outcome of a call: its result or error travels to the awaiting caller. Entry methods of C++ and of
// Python use the same functions; only the packing of values differs.
//
// A result is delivered once: to the caller's future, or to the gather of a call to a whole collection. A
// call that sends payloads in place is over when its result has arrived and their memory is free. Threads:
// one PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weft/chare/chares.h"
#include "weft/runtime/future.h"
#include "weft/runtime/message.h"
#include "weft/runtime/operation.h"

namespace weft::chare {

// --- The callee's side

// The message of a result. Its user packs `value_bytes` bytes to value(), then calls send().
class ResultMessage {
 public:
  // REQUIRES: reply.kind is not kNone.
  ResultMessage(ChareBase& chare, const ReplyTo& reply, std::size_t value_bytes);

  std::byte* value() { return message_->payload() + header_bytes_; }
  // The message to attach buffers to; null for a gathered result, which cannot have any.
  runtime::Message* carrier() { return reply_.kind == ReplyTo::Kind::kGather ? nullptr : message_.get(); }
  void send() &&;

 private:
  ChareBase& chare_;
  ReplyTo reply_;
  std::size_t header_bytes_;
  runtime::MessagePtr message_;
};

// A result and the function that packs it, which is called twice: with a Pup that sizes and one that packs.
struct ValueToSend {
  void* value;
  void (*pack)(Pup& p, void* value);
};
// REQUIRES: `value` outlives its use.
template <class T>
ValueToSend value_to_send(T& value) {
  return {const_cast<std::remove_const_t<T>*>(std::addressof(value)),
          [](Pup& p, void* packed) { p | *static_cast<T*>(packed); }};
}
void send_value(ChareBase& chare, const ReplyTo& reply, const ValueToSend& value);
// The outcome of a method that returns nothing.
void send_nothing(ChareBase& chare, const ReplyTo& reply);
// Sends `error` to the caller. If reply.kind is kNone, it ends the job, naming chare and method; kClosed ends only the
// method if the chare's collection has been destroyed.
void send_error(ChareBase& chare, const ReplyTo& reply, const EntryInfo& entry,
                const std::exception_ptr& error);
// Sends the error of another language, whose code is `code`, to the caller.
void send_error(ChareBase& chare, const ReplyTo& reply, const EntryInfo& entry,
                const std::exception_ptr& error, base::StatusCode code);

// --- The caller's side

// Makes `result` the destination of the result of a call to one element.
ReplyTo reply_to(runtime::FutureState& result);
// The operation state of the buffers that `message` sends in place. The caller gets the handle's share. Null
// if the message carries copies only: no operation waits for these. REQUIRES: the message is not sent yet.
runtime::OperationState* report_sending_in_place(runtime::Message& message);
// `result` becomes ready only when `sending` has ended too. A failure of `sending` becomes the result. Takes
// the handle's share of `sending`. Does nothing if `sending` is null.
void delay_until_sent(runtime::FutureState& result, runtime::OperationState* sending);

// Reads the Pup that Chares::expect_gather() passes on. Calls `start(count)` once, then `value(i, p)` for
// each element that returned a value. Returns the first error, null for none.
template <class Start, class Value>
std::exception_ptr read_gathered(Pup& p, Start start, Value value) {
  const std::uint64_t count = p.count(0, 1);
  start(count);
  std::exception_ptr first;
  for (std::uint64_t i = 0; i < count; ++i) {
    bool failed = false;
    p | failed;
    if (!failed) {
      value(i, p);
    } else if (std::exception_ptr error = runtime::unpack_error(p); !first) {
      first = error;
    }
  }
  return first;
}

// The type of the result of a call to several elements: their results, or nothing.
template <class Value>
struct GatheredValuesOf {
  using Type = std::vector<Value>;
};
template <>
struct GatheredValuesOf<void> {
  using Type = void;
};
template <class Value>
using GatheredValues = typename GatheredValuesOf<Value>::Type;

// For Chares::expect_gather(): sets `result`. `places` says to which place each result goes, in the order in which they are gathered;
// empty: to that place.
template <class Value>
std::function<void(Pup&)> gather_into(const runtime::Future<GatheredValues<Value>>& result,
                                      std::vector<std::uint64_t> places) {
  return [result, places = std::move(places)](Pup& p) {
    if (result.state()->is_set()) return;  // failed: the payloads did not reach a PE
    using One = std::conditional_t<std::is_void_v<Value>, std::monostate, Value>;
    std::vector<One> values;
    const std::exception_ptr error = read_gathered(
        p, [&values](std::uint64_t count) { values.resize(count); },
        [&values, &places](std::uint64_t i, Pup& from) {
          One value{};
          from | value;
          values.at(places.empty() ? i : places.at(i)) = std::move(value);
        });
    if (error) {
      result.set_error(error);
    } else if constexpr (std::is_void_v<Value>) {
      result.set();
    } else {
      result.set(std::move(values));
    }
  };
}

}  // namespace weft::chare
