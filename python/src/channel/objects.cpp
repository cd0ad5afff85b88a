#include "channel/objects.h"

#include <cstddef>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/status.h"
#include "weft/channel/contents.h"
#include "weft/runtime/block_pool.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/runtime.h"

#include "await/future.h"
#include "await/operation.h"
#include "base/format.h"
#include "codec/attach.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/landed_memory.h"
#include "runtime/joint_operation.h"
#include "runtime/message/receive_buffer_pool.h"
#include "support/errors.h"

namespace weft::python {

namespace {

constexpr std::uint32_t kMark = 0x6a626f77;  // tells an object from plain memory of the same size
// What a first message has room for: ghost cells of small blocks, which a body would make twice as dear. The receiver keeps as
// much for each receive in flight, with its state in a block of 1 KiB.
constexpr std::size_t kInlineBytes = 776;
static_assert(kMostCopies * sizeof(std::uint64_t) <= kInlineBytes);
// Check mode tells a first message from every array.
constexpr channel::Contents kObject{"object", 1, {}};
// More bodies than a sender can have in flight.
constexpr std::uint32_t kMostSkipped = std::uint32_t{1} << 20;

memory::Buffer host_buffer(void* data, std::size_t size_bytes) { return {data, size_bytes, {}, nullptr}; }

// Many receives are in flight at a time, more than malloc() keeps blocks of this size at hand.
template <class T>
class PoolAllocator {
 public:
  using value_type = T;
  explicit PoolAllocator(runtime::BlockPool& pool) : pool_(&pool) {}
  template <class Other>  // implicit: the library converts it
  PoolAllocator(const PoolAllocator<Other>& other) : pool_(other.pool()) {}
  T* allocate(std::size_t count) { return static_cast<T*>(pool_->allocate(count * sizeof(T))); }
  void deallocate(T* block, std::size_t count) { pool_->deallocate(block, count * sizeof(T)); }
  runtime::BlockPool* pool() const { return pool_; }
  friend bool operator==(const PoolAllocator& a, const PoolAllocator& b) { return a.pool_ == b.pool_; }

 private:
  runtime::BlockPool* pool_;
};

void set_object(PyFutureState& state, std::span<const std::byte> bytes,
                std::span<runtime::Attachment> arrays = {}) {
  try {
    Decoder decoder(bytes);
    decoder.set_attachments(arrays);
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

// The message that each object has. Only its used bytes are sent, which are odd in number: arrays of elements of two bytes or
// more have another size, so a receive of such an array fails.
struct ObjectStream::First {
  std::uint32_t mark = kMark;
  std::uint32_t body = 0;        // the number of the first body
  std::uint64_t size_bytes = 0;  // of the encoded value: in `bytes` if it fits, else the first body
  std::uint32_t num_arrays = 0;  // each is a body; at most kMostCopies
  std::uint32_t reserved = 0;
  // The sizes of the arrays, behind them the encoded value, and a byte that makes the number odd.
  std::byte bytes[kInlineBytes + 1];

  static constexpr std::size_t kHeaderBytes = 24;
  std::size_t sizes_bytes() const { return num_arrays * sizeof(std::uint64_t); }
  bool has_value() const { return size_bytes <= kInlineBytes && sizes_bytes() <= kInlineBytes - size_bytes; }
  std::size_t content_bytes() const { return sizes_bytes() + (has_value() ? size_bytes : 0); }
  std::size_t used_bytes() const { return (kHeaderBytes + content_bytes()) | 1; }
  memory::Buffer used() {
    bytes[content_bytes()] = std::byte{};
    return host_buffer(this, used_bytes());
  }
  std::span<const std::byte> value() const { return std::span(bytes).subspan(sizes_bytes(), size_bytes); }
};

struct ObjectStream::Receive {
  Receive(Ref future_in, std::shared_ptr<void> held_in)
      : future(std::move(future_in)), held(std::move(held_in)) {}

  First first;
  base::Status status;
  std::size_t received_bytes = 0;
  bool has_arrived = false;
  std::vector<runtime::Attachment> bodies;
  std::size_t awaited = 1;     // bodies, and the loop that receives them
  std::exception_ptr failure;  // of a body
  Ref future;
  std::shared_ptr<void> held;  // keeps the end, which owns the stream

  PyFutureState& state() const { return *future_state(future.get()); }
  bool is_object() const {
    return status.ok() && received_bytes >= First::kHeaderBytes && first.mark == kMark &&
           first.num_arrays <= kMostCopies && received_bytes == first.used_bytes();
  }
};

ObjectStream& ObjectStream::of(channel::Channel& channel) {
  std::shared_ptr<void>& attached = channel.attached();
  if (attached == nullptr) attached = std::make_shared<ObjectStream>(channel);
  return *static_cast<ObjectStream*>(attached.get());
}

// --- Sending

namespace {

void encode(Encoder& encoder, PyObject* value, const channel::Channel& channel) {
  try {
    encoder.value(value);
  } catch (const PythonError&) {
    rethrow_unsendable(base::format("an object on {}", channel.description()));
  }
}

// Throws base::Error if there is no memory.
runtime::Attachment allocate_body(runtime::Runtime& runtime, std::size_t size_bytes) {
  base::Result<runtime::Attachment> block = runtime.receive_buffer_pool().allocate(size_bytes, {});
  if (!block.ok()) base::throw_status(block.status());
  return std::move(block).value();
}

}  // namespace

// The bodies that the receiver has not got at once. Their memory stays until they are sent, also if the object fails meanwhile.
class ObjectStream::BodySends {
 public:
  BodySends() = default;
  BodySends(const BodySends&) = delete;
  BodySends& operator=(const BodySends&) = delete;
  ~BodySends() {
    for (std::size_t i = 0; i < sendings_.size(); ++i)
      std::move(sendings_[i]).then([block = std::move(blocks_[i])](const base::Status&, std::size_t) {});
  }
  bool is_empty() const { return sendings_.empty(); }
  void add(channel::Channel& bodies, runtime::Attachment block) {
    sendings_.reserve(sendings_.size() + 1);
    blocks_.push_back(std::move(block));
    sendings_.push_back(bodies.send(blocks_.back().buffer()));
  }
  // Over when all are sent, with the first failure.
  Ref operation(Engine& engine) {
    const Ref keeper = checked(PyTuple_New(static_cast<Py_ssize_t>(blocks_.size())));
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Ref block = make_landed_bytes(engine, blocks_[i].share());
      PyTuple_SET_ITEM(keeper.get(), static_cast<Py_ssize_t>(i), block.release());
    }
    runtime::Operation sending = runtime::all_of(engine.runtime(), std::exchange(sendings_, {}));
    return make_operation_object(engine, std::move(sending).release(), keeper, Ref::borrow(Py_None));
  }

 private:
  std::vector<runtime::Operation> sendings_;
  std::vector<runtime::Attachment> blocks_;
};

// Encoding may run code of the program, which may send on this channel. From there on to the last send no Python object is
// made, because that might collect garbage: no such code runs between the sends.
Ref ObjectStream::send(Engine& engine, PyObject* value) {
  static_assert(offsetof(First, bytes) == First::kHeaderBytes);
  Encoder encoder(OutOfBand::kCopies);
  encode(encoder, value, channel_);
  First first;
  first.body = bodies_sent_;
  first.size_bytes = encoder.size_bytes();
  std::byte* size_at = first.bytes;
  for (const Encoder::Attached& array : encoder.attached()) {
    const std::uint64_t size_bytes = array.memory.size_bytes;
    std::memcpy(size_at, &size_bytes, sizeof size_bytes);
    size_at += sizeof size_bytes;
    ++first.num_arrays;
  }
  if (first.has_value()) [[likely]]
    encoder.copy_to(size_at);
  BodySends sends;
  if (!first.has_value() || first.num_arrays > 0) send_bodies(engine, first, encoder, sends);
  runtime::Operation first_sent = channel_.send(first.used(), &kObject);
  if (sends.is_empty())
    return make_operation_object(engine, std::move(first_sent).release(), Ref(), Ref::borrow(Py_None));
  std::move(first_sent).detach();
  return sends.operation(engine);
}

void ObjectStream::send_bodies(Engine& engine, const First& first, Encoder& encoder, BodySends& sends) {
  channel::Channel bodies = channel_.out_of_band();
  const auto send_body = [&](runtime::Attachment block) {
    block.copy_now();
    if (!bodies.hand_over(block)) sends.add(bodies, std::move(block));
    ++bodies_sent_;
  };
  if (!first.has_value()) {
    runtime::Attachment body = allocate_body(engine.runtime(), first.size_bytes);
    encoder.copy_to(static_cast<std::byte*>(body.buffer().data));
    send_body(std::move(body));
  }
  for (Encoder::Attached& array : encoder.attached()) send_body(attachment_of(engine.runtime(), array));
}

// --- Receiving

Ref ObjectStream::receive(Engine& engine) {
  auto* const state = new PyFutureState(engine);
  const Ref future = make_future_object(state);
  const auto receive =
      std::allocate_shared<Receive>(PoolAllocator<Receive>(engine.runtime().pool()), future, channel_.hold());
  runtime::Operation arriving = channel_.recv_up_to(host_buffer(&receive->first, sizeof receive->first));
  state->end_job_if_unobserved("an object that was not awaited");
  receives_.push_back(receive);
  ++channel_.attached_state().num_busy;
  std::move(arriving).then([this, receive](const base::Status& status, std::size_t received_bytes) {
    receive->status = status;
    receive->received_bytes = received_bytes;
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
  if (!receive->is_object()) {
    throw base::Error(base::StatusCode::kTruncated,
                      base::format("{}: recv_object met plain memory; the other chare has called send, and "
                                   "this one receives that with recv(into=...)",
                                   channel_.description()));
  }
  if (first.has_value() && first.num_arrays == 0) [[likely]] {
    set_object(receive->state(), first.value());
    return ended(channel_);
  }
  std::uint64_t sizes[1 + kMostCopies] = {first.size_bytes};
  const std::size_t num_values = first.has_value() ? 0 : 1;
  std::memcpy(sizes + num_values, first.bytes, first.sizes_bytes());
  receive_bodies(receive, std::span(sizes).first(num_values + first.num_arrays));
}

void ObjectStream::receive_bodies(const std::shared_ptr<Receive>& receive,
                                  std::span<const std::uint64_t> sizes) {
  channel::Channel bodies = channel_.out_of_band();
  skip_bodies(bodies, receive->first.body);
  receive->bodies.reserve(sizes.size());
  try {
    for (const std::uint64_t size_bytes : sizes) receive_body(receive, bodies, size_bytes);
  } catch (...) {  // its bodies that are not received are skipped with the next object
    receive->failure = std::current_exception();
  }
  body_ended(channel_, *receive);
}

void ObjectStream::receive_body(const std::shared_ptr<Receive>& receive, channel::Channel& bodies,
                                std::uint64_t size_bytes) {
  if (size_bytes > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max()))
    Decoder::corrupt("an object of more bytes than memory can have");
  runtime::Attachment body = bodies.take_handed_over();
  if (body) {
    ++bodies_received_;
    if (body.buffer().size_bytes != size_bytes) Decoder::corrupt("a part of another size than was told");
    receive->bodies.push_back(std::move(body));
    return;
  }
  try {
    body = allocate_body(Engine::current().runtime(), size_bytes);
  } catch (const base::Error&) {
    throw base::Error(
        base::StatusCode::kOutOfMemory,
        base::format("{}: there is no memory for an object of {} bytes", channel_.description(), size_bytes));
  }
  runtime::Operation arriving = bodies.recv(body.buffer());
  ++bodies_received_;
  ++receive->awaited;
  receive->bodies.push_back(std::move(body));
  std::move(arriving).then([receive, channel = channel_](const base::Status& status, std::size_t) {
    if (status.failed() && receive->failure == nullptr) receive->failure = base::error_of(status);
    body_ended(channel, *receive);
  });
}

void ObjectStream::body_ended(const channel::Channel& channel, Receive& receive) {
  if (--receive.awaited > 0) return;
  try {
    if (receive.failure != nullptr) std::rethrow_exception(receive.failure);
    if (receive.first.has_value()) {
      set_object(receive.state(), receive.first.value(), receive.bodies);
    } else {
      const memory::Buffer& value = receive.bodies.front().buffer();
      set_object(receive.state(), {static_cast<const std::byte*>(value.data), value.size_bytes},
                 std::span(receive.bodies).subspan(1));
    }
  } catch (...) {
    set_failure(receive.state());
  }
  receive.bodies.clear();
  ended(channel);
}

void ObjectStream::skip_bodies(channel::Channel& bodies, std::uint32_t number) {
  if (number - bodies_received_ > kMostSkipped) Decoder::corrupt("an object with a number that cannot be");
  for (; bodies_received_ != number; ++bodies_received_) {
    if (bodies.take_handed_over()) continue;
    bodies.recv(memory::Buffer()).then([](const base::Status&, std::size_t) {
    });  // truncated: its bytes are dropped
  }
}

}  // namespace weft::python
