// The outcome of a call: how its result or error travels to the awaiting caller, and when it is given. Entry
// methods of C++ and of Python use the same functions; only the packing of values differs.
//
// A result is given once: to the caller's future, or into the gather of a call to a whole collection. A call whose
// payloads are sent in place is over when its result is here and their memory is free. Threads: one PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

#include "weft/chare/chares.h"
#include "weft/runtime/future.h"
#include "weft/runtime/message.h"
#include "weft/runtime/operation.h"

namespace weft::chare {

// --- The callee's side

// A result on its way: the caller of these functions packs `value_bytes` bytes to value(), then send() takes them.
class ResultMessage {
 public:
  // REQUIRES: the reply goes somewhere (kind is not kNone).
  ResultMessage(ChareBase& chare, const ReplyTo& reply, std::size_t value_bytes);

  std::byte* value() { return message_->payload() + header_bytes_; }
  // What buffers beside the result are attached to; null for a result that is gathered, which has none.
  runtime::Message* carrier() { return reply_.kind == ReplyTo::Kind::kGather ? nullptr : message_.get(); }
  void send() &&;

 private:
  ChareBase& chare_;
  ReplyTo reply_;
  std::size_t header_bytes_;
  runtime::MessagePtr message_;
};

// `pack_value` is called twice: with a Pup that sizes and one that packs.
void send_value(ChareBase& chare, const ReplyTo& reply, const std::function<void(Pup&)>& pack_value);
// An error that goes nowhere ends the job, naming chare and method.
void send_error(ChareBase& chare, const ReplyTo& reply, const EntryInfo& entry,
                const std::exception_ptr& error);

// --- The caller's side

// Where the result of a call to one element goes.
ReplyTo reply_to(runtime::FutureState& result);
// The operation state of the buffers that `message` sends in place. The caller owns its handle. Null if the message
// carries copies only, because no operation waits for these. REQUIRES: the message is not sent yet.
runtime::OperationState* report_sending_in_place(runtime::Message& message);
// Has `result` be ready only when `sending`, too, has ended; its failure becomes the result's. Takes the handle's
// share of `sending`; null: nothing is waited for.
void delay_until_sent(runtime::FutureState& result, runtime::OperationState* sending);

// Reads what Chares::expect_gather() hands over: `start(count)` once, then `value(i, p)` for each element that
// returned. Returns the first error, null for none.
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

}  // namespace weft::chare
