#include "weft/runtime/runtime.h"

#include <fmt/format.h>
#include <sched.h>

#include "machine/machine.h"
#include "memory/memory.h"
#include "runtime/collective/quiescence.h"
#include "runtime/collective/reductions.h"
#include "runtime/collective/spanning_tree.h"
#include "runtime/handlers.h"
#include "runtime/parts.h"

namespace weft::runtime {

namespace {

// Rounds of the scheduler that find nothing before an idle PE starts to yield its processor: long enough for
// a reply of a few microseconds, short where PEs share processors (see ARCHITECTURE.md, "Waiting").
constexpr int kSpinRounds = 2000;
constexpr int kSpinRoundsOversubscribed = 100;

// With envelope, header of an entry method and a few arguments.
constexpr std::size_t kSmallMessageBytes = 256;

int num_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

MessagePtr Message::create(Runtime& runtime, HandlerId handler, std::size_t payload_bytes) {
  void* block = runtime.pool().allocate_mostly<kSmallMessageBytes>(sizeof(Message) + payload_bytes);
  auto* message = new (block) Message(runtime, payload_bytes);
  message->envelope_.handler = handler;
  message->envelope_.source_pe = static_cast<std::uint32_t>(runtime.pe());
  return MessagePtr(message);
}

void MessageRelease::operator()(Message* message) const {
  if (--message->references_ > 0) return;
  BlockPool& pool = message->runtime_->pool();
  std::size_t size_bytes = sizeof(Message) + message->payload_bytes_;
  message->~Message();
  pool.deallocate_mostly<kSmallMessageBytes>(message, size_bytes);
}

Runtime::Runtime(machine::Machine& machine, memory::Memory& memory, const RuntimeOptions& options)
    : machine_(machine),
      memory_(memory),
      pe_(machine.pe()),
      num_pes_(machine.num_pes()),
      parts_(std::make_unique<Parts>(*this, options)) {
  parts_->spin_rounds = options.local_pes > num_processors() ? kSpinRoundsOversubscribed : kSpinRounds;
  base::check(machine_.set_am_handler(
      kMessageAm,
      [](void* context, machine::AmArrival& arrival) {
        static_cast<Runtime*>(context)->receive_arrival(&arrival);
      },
      this));
  base::check(machine_.set_am_handler(
      kBufferMessageAm,
      [](void* context, machine::AmArrival& arrival) {
        static_cast<Runtime*>(context)->receive_with_buffer(&arrival);
      },
      this));
  set_handler(
      kFutureSetHandler,
      [](void* context, MessagePtr message) {
        static_cast<Runtime*>(context)->set_exported_future(std::move(message));
      },
      this);
  static_cast<void>(Registry<Combiner>::all());  // numbers them
  parts_->termination.install();
  reductions_ = std::make_unique<Reductions>(*this);
  quiescence_ = std::make_unique<Quiescence>(*this);
}

Runtime::~Runtime() { close(); }

void Runtime::close() {
  if (closed_) return;
  closed_ = true;
  exiting_ = true;
  machine_.close();
  memory_.close();
  for (auto& [type, model] : parts_->models) model->close();
  drop_queue();
  while (detached_ != nullptr) detached_->abandon();
  drop_queue();                                               // what the frames' destructors posted
  while (!parts_->models.empty()) parts_->models.pop_back();  // the last may use those before it
  auto exported = std::exchange(parts_->exported_futures, {});
  for (auto& [id, state] : exported) state->release();
  reductions_.reset();
  quiescence_.reset();
}

void Runtime::set_handler(HandlerId id, MessageHandler handler, void* context) {
  parts_->handlers.at(id) = {handler, context};
}

void Runtime::set_poster(HandlerId id, MessagePoster poster, MessageDropped dropped) {
  parts_->attachments.set_poster(id, {poster, dropped});
}

memory::Place Runtime::own_place(memory::Kind kind) const { return memory_.default_place(kind); }

void Runtime::add_model(std::type_index type, std::unique_ptr<Model> model) {
  parts_->models.emplace_back(type, std::move(model));
}

Model& Runtime::find_model(std::type_index type) {
  for (auto& [key, model] : parts_->models) {
    if (key == type) return *model;
  }
  throw base::Error(base::StatusCode::kNotFound,
                    fmt::format("the model {} is not installed in this runtime", type.name()));
}

// --- Sending

void Runtime::send(int pe, MessagePtr message) {
  if (closed_) return;
  if (pe < 0 || pe >= num_pes_) {
    throw base::Error(base::StatusCode::kOutOfRange,
                      fmt::format("PE {} does not exist; this job has PEs 0 to {}", pe, num_pes_ - 1));
  }
  if ((message->envelope().flags & kControlFlag) == 0) count_sent();
  if (message->attached_ != nullptr) [[unlikely]] {
    send_with_buffers(pe, std::move(message));
  } else if (pe == pe_) {
    enqueue(message.release());
  } else {
    send_active_message(pe, {}, message.release());
  }
}

void Runtime::send_with_buffers(int pe, MessagePtr message) {
  if (pe == pe_) {
    parts_->attachments.send_to_self(std::move(message));
  } else {
    parts_->attachments.send(pe, std::move(message));
  }
}

void Runtime::broadcast(MessagePtr message) {
  if (closed_) return;
  if (message->attached_ != nullptr) [[unlikely]] {
    parts_->attachments.expect_no_poster(*message);
    message->report_jointly();
  }
  Envelope& envelope = message->envelope();
  envelope.flags |= kBroadcastFlag;
  envelope.root_pe = static_cast<std::uint32_t>(pe_);
  if ((envelope.flags & kControlFlag) == 0) {
    for (int i = 0; i < num_pes_; ++i) count_sent();
  }
  forward_broadcast(*message);
  enqueue(message.release());
}

void Runtime::forward_broadcast(Message& message) {
  // Nobody would handle it, and the PEs below may have stopped already: what they are sent would never
  // arrive.
  if (exiting_ && (message.envelope().flags & kControlFlag) == 0) return;
  SpanningTree tree(static_cast<int>(message.envelope().root_pe), pe_, num_pes_);
  for (int i = 0; i < tree.num_children(); ++i) {
    // One completion per send: each child gets its own handle on the wire bytes.
    MessagePtr copy = Message::create(*this, message.envelope().handler, message.payload_bytes());
    copy->envelope() = message.envelope();
    std::copy_n(message.payload(), message.payload_bytes(), copy->payload());
    if (message.attached_ != nullptr) [[unlikely]] {
      message.share_attachments(*copy);
      parts_->attachments.send(tree.child(i), std::move(copy));
    } else {
      send_active_message(tree.child(i), {}, copy.release());
    }
  }
  message.envelope().flags &= static_cast<std::uint8_t>(~kBroadcastFlag);
}

void Runtime::deliver(const Target& target, std::span<const std::byte> result) {
  MessagePtr message = Message::create(*this, target.handler, target.prefix.size() + result.size());
  std::copy(result.begin(), result.end(),
            std::copy(target.prefix.begin(), target.prefix.end(), message->payload()));
  message->envelope().flags = target.flags;
  if ((target.flags & kBroadcastFlag) != 0) {
    broadcast(std::move(message));
  } else {
    send(static_cast<int>(target.pe), std::move(message));
  }
}

void Runtime::send_active_message(int pe, std::span<const std::byte> header, Message* message) {
  message->base::Completion::function = [](base::Completion* completion, base::Status status, std::size_t) {
    MessagePtr sent(static_cast<Message*>(completion));
    Runtime& runtime = sent->runtime();
    --runtime.outstanding_sends_;
    runtime.check_sent(-1, status);
  };
  ++outstanding_sends_;
  base::Status status = machine_.am_send(
      pe, kMessageAm, header, memory::ConstBuffer(message->wire(), message->wire_bytes()), message);
  if (status.is_pending()) return;  // the message is its completion's
  MessagePtr sent(message);
  --outstanding_sends_;
  check_sent(pe, status);
}

void Runtime::check_sent(int pe, const base::Status& status) {
  if (!status.failed() || exiting_) return;
  fail(pe < 0 ? fmt::format("a message could not be sent: {}", status.to_string())
              : fmt::format("a message could not be sent to PE {}: {}", pe, status.to_string()));
}

// --- Receiving

void Runtime::receive_arrival(machine::AmArrival* arrival) {
  std::size_t size_bytes = arrival->payload_size_bytes;
  if (size_bytes < sizeof(Envelope)) {
    fail(fmt::format(
        "a message of {} bytes arrived, shorter than its envelope of {}; do all PEs run the same program?",
        size_bytes, sizeof(Envelope)));
    return;
  }
  MessagePtr message;
  try {
    message = Message::create(*this, 0, size_bytes - sizeof(Envelope));
  } catch (const std::bad_alloc&) {  // must not leave through the machine
    fail(fmt::format("there is no memory for a message of {} bytes", size_bytes));
    return;
  }
  if (!arrival->header.empty()) {
    base::Status status = parts_->attachments.expect(*message, arrival->header);
    if (status.failed()) {
      fail(status.to_string());
      return;
    }
  }
  if (arrival->data != nullptr) {
    std::copy_n(arrival->data, size_bytes, message->wire());
    receive(std::move(message));
    return;
  }
  message->base::Completion::function = [](base::Completion* completion, base::Status status, std::size_t) {
    MessagePtr received(static_cast<Message*>(completion));
    Runtime& runtime = received->runtime();
    runtime.finish_receive(std::move(received), status);
  };
  Message* raw = message.release();
  base::Status status =
      machine_.am_receive(arrival->take(), memory::Buffer{raw->wire(), size_bytes, {}, nullptr}, raw);
  if (!status.is_pending()) finish_receive(MessagePtr(raw), status);
}

void Runtime::receive_with_buffer(machine::AmArrival* arrival) {
  base::Status status;
  try {
    base::Result<MessagePtr> message = parts_->attachments.unwrap(*arrival);
    if (message.ok()) return receive(std::move(message).value());
    status = message.status();
  } catch (const std::bad_alloc&) {  // must not leave through the machine
    status = {base::StatusCode::kOutOfMemory,
              fmt::format("there is no memory for a message of {} bytes", arrival->payload_size_bytes)};
  }
  fail(status.to_string());
}

void Runtime::finish_receive(MessagePtr message, const base::Status& status) {
  if (status.ok()) {
    receive(std::move(message));
  } else if (!exiting_) {
    fail(fmt::format("a message of {} bytes could not be fetched from its sender: {}", message->wire_bytes(),
                     status.to_string()));
  }
}

void Runtime::receive(MessagePtr message) {
  const Envelope& envelope = message->envelope();
  if (envelope.handler >= kNumHandlers || parts_->handlers[envelope.handler].function == nullptr ||
      envelope.root_pe >= static_cast<std::uint32_t>(num_pes_)) {
    fail(fmt::format(
        "a message from PE {} names handler {}, which this PE does not have; do all PEs run the same "
        "program?",
        envelope.source_pe, envelope.handler));
    return;
  }
  if (message->attached_ != nullptr) [[unlikely]]
    return parts_->attachments.arrived(std::move(message));
  if ((envelope.flags & kBroadcastFlag) != 0) forward_broadcast(*message);
  enqueue(message.release());
}

void Runtime::enqueue(Message* message) {
  message->Work::function = [](Work* self, Runtime& runtime, WorkAction action) {
    MessagePtr owned(static_cast<Message*>(self));
    bool control = (owned->envelope().flags & kControlFlag) != 0;
    if (runtime.closed_ || (action == WorkAction::kDrop && !control)) return;
    runtime.dispatch(std::move(owned));
  };
  queue_.push(message, message->envelope().priority);
}

void Runtime::dispatch(MessagePtr message) {
  if ((message->envelope().flags & kControlFlag) == 0) count_processed();
  Parts::Handler handler = parts_->handlers[message->envelope().handler];
  std::uint32_t source_pe = message->envelope().source_pe;
  try {
    handler.function(handler.context, std::move(message));
  } catch (...) {  // bytes that do not unpack; what user code throws was caught by its model
    fail_unawaited(std::current_exception(), fmt::format("the handling of a message from PE {}", source_pe));
  }
}

Future<> Runtime::quiescence() { return quiescence_->detect(); }

}  // namespace weft::runtime
