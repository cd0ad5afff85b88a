#include "channel/objects.h"

#include <limits>
#include <new>
#include <utility>

#include "weft/base/error.h"

#include "await/future.h"
#include "await/operation.h"
#include "base/format.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "support/errors.h"

namespace weft::python {

namespace {

constexpr std::uint32_t kMark = 0x6a626f77;  // tells an object from plain memory of the same size
constexpr std::size_t kInlineBytes = 112;
// More bodies than a sender can have in flight.
constexpr std::uint32_t kMostSkipped = std::uint32_t{1} << 20;

memory::Buffer host_buffer(void* data, std::size_t size_bytes) { return {data, size_bytes, {}, nullptr}; }

void set_object(PyFutureState& state, std::span<const std::byte> bytes) {
  try {
    Decoder decoder(bytes);
    state.set(decoder.value());
  } catch (...) {  // the caller gets the error of decoding
    state.set_error(caught_as_travelling_error());
  }
}

// In a catch block.
void set_failure(PyFutureState& state) {
  try {
    throw;
  } catch (const base::Error& error) {
    // The end of a collection is no failure of the program, as for receives of plain memory.
    if (error.code() == base::StatusCode::kClosed) state.observe();
    state.set_error(std::current_exception());
  } catch (...) {
    state.set_error(caught_as_travelling_error());
  }
}

}  // namespace

// The message that each object has.
struct ObjectStream::First {
  std::uint32_t mark = kMark;
  std::uint32_t body = 0;  // the number of the body, if there is one
  std::uint64_t size_bytes = 0;
  std::byte bytes[kInlineBytes] = {};
};

struct ObjectStream::Receive {
  First first;
  base::Status status;
  bool has_arrived = false;
  std::unique_ptr<std::byte[]> body;
  Ref future;
  std::shared_ptr<void> held;  // keeps the end, which owns the stream

  PyFutureState& state() const { return *future_state(future.get()); }
};

ObjectStream& ObjectStream::of(channel::Channel& channel) {
  std::shared_ptr<void>& attached = channel.attached();
  if (attached == nullptr) attached = std::make_shared<ObjectStream>(channel);
  return *static_cast<ObjectStream*>(attached.get());
}

// --- Sending

Ref ObjectStream::send(Engine& engine, PyObject* value) {
  static_assert(sizeof(First) == 128);
  Encoder encoder;
  try {
    encoder.value(value);
  } catch (const PythonError&) {
    rethrow_unsendable(base::format("an object on {}", channel_.description()));
  }
  First first;
  first.size_bytes = encoder.size_bytes();
  if (first.size_bytes <= kInlineBytes) {
    encoder.copy_to(first.bytes);
    return make_operation_object(engine, channel_.send(host_buffer(&first, sizeof first)).release(), Ref(),
                                 Ref::borrow(Py_None));
  }
  Ref bytes = checked(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(encoder.size_bytes())));
  encoder.copy_to(reinterpret_cast<std::byte*>(PyBytes_AS_STRING(bytes.get())));
  channel::Channel bodies = channel_.out_of_band();
  runtime::OperationState* const sending =
      bodies.send(host_buffer(PyBytes_AS_STRING(bytes.get()), encoder.size_bytes())).release();
  first.body = bodies_sent_++;
  Ref operation = make_operation_object(engine, sending, std::move(bytes), Ref::borrow(Py_None));
  channel_.send(host_buffer(&first, sizeof first)).detach();
  return operation;
}

// --- Receiving

Ref ObjectStream::receive(Engine& engine) {
  auto receive = std::make_shared<Receive>();
  auto* const state = new PyFutureState(engine);
  receive->future = make_future_object(state);
  receive->held = channel_.hold();
  runtime::Operation arriving = channel_.recv(host_buffer(&receive->first, sizeof receive->first));
  state->end_job_if_unobserved("an object that was not awaited");
  receives_.push_back(receive);
  ++channel_.attached_state().num_busy;
  std::move(arriving).then([this, receive](const base::Status& status, std::size_t) {
    receive->status = status;
    receive->has_arrived = true;
    handle_arrived();
  });
  return receive->future;
}

void ObjectStream::handle_arrived() {
  while (!receives_.empty() && receives_.front()->has_arrived) {
    const std::shared_ptr<Receive> next = std::move(receives_.front());
    receives_.pop_front();
    try {
      handle(next);
    } catch (...) {
      set_failure(next->state());
      ended(channel_);
    }
  }
}

void ObjectStream::ended(const channel::Channel& channel) {
  if (--channel.attached_state().num_busy == 0) channel.attached_is_idle();
}

void ObjectStream::handle(const std::shared_ptr<Receive>& receive) {
  const First& first = receive->first;
  const bool is_memory = receive->status.code() == base::StatusCode::kTruncated;
  if (receive->status.failed() && !is_memory) base::throw_status(receive->status);
  if (is_memory || first.mark != kMark) {
    throw base::Error(base::StatusCode::kTruncated,
                      base::format("{}: recv_object met plain memory; the other chare has called send, and "
                                   "this one receives that with recv(into=...)",
                                   channel_.description()));
  }
  if (first.size_bytes <= kInlineBytes) {
    set_object(receive->state(), std::span(first.bytes).first(first.size_bytes));
    return ended(channel_);
  }
  if (first.size_bytes > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max())) {
    Decoder::corrupt("an object of more bytes than memory can have");
  }
  channel::Channel bodies = channel_.out_of_band();
  skip_bodies(bodies, first.body);
  const std::size_t size_bytes = first.size_bytes;
  receive->body.reset(new (std::nothrow) std::byte[size_bytes]);
  if (receive->body == nullptr) {
    throw base::Error(
        base::StatusCode::kOutOfMemory,
        base::format("{}: there is no memory for an object of {} bytes", channel_.description(), size_bytes));
  }
  runtime::Operation arriving = bodies.recv(host_buffer(receive->body.get(), size_bytes));
  ++bodies_received_;
  std::move(arriving).then(
      [receive, channel = channel_](const base::Status& status, std::size_t received_bytes) {
        try {
          if (status.failed()) base::throw_status(status);
          set_object(receive->state(), std::span(receive->body.get(), received_bytes));
        } catch (...) {
          set_failure(receive->state());
        }
        ended(channel);
      });
}

void ObjectStream::skip_bodies(channel::Channel& bodies, std::uint32_t number) {
  if (number - bodies_received_ > kMostSkipped) Decoder::corrupt("an object with a number that cannot be");
  for (; bodies_received_ != number; ++bodies_received_) {
    bodies.recv(memory::Buffer()).then([](const base::Status&, std::size_t) {
    });  // truncated: its bytes are dropped
  }
}

}  // namespace weft::python
