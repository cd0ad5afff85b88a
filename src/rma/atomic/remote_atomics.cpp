#include "rma/atomic/remote_atomics.h"

#include <cstring>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::rma {

using base::Error;
using base::Status;
using base::StatusCode;

namespace {

// An operation on an address that `segment` does not contain, or that is not aligned, throws. Only a PE that has an address for the
// memory knows how it is aligned; the owner does.
void expect_word(const Segments& segments, const KnownSegment& segment, const GlobalAddress& address,
                 AtomicType type) {
  const std::size_t size_bytes = atomic_bytes(type);
  segments.expect_inside(segment, address, size_bytes);
  if (!segment.is_reached()) return;
  if (reinterpret_cast<std::uintptr_t>(segment.part(address, 0).data) % size_bytes == 0) return;
  throw Error(StatusCode::kInvalidArgument,
              base::format("an atomic operation on {} needs an address that is a multiple of {}",
                           describe(address), size_bytes));
}

}  // namespace

// Both travel as they lie in memory, because PEs have the same build. Their sizes tell them apart.
struct RemoteAtomics::Request {
  AtomicKind kind = AtomicKind::kLoad;
  AtomicType type = AtomicType::kInteger64;
  std::uint8_t unused[6] = {};
  std::uint64_t request = 0;
  GlobalAddress address;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
};

struct RemoteAtomics::Answer {
  StatusCode code = StatusCode::kOk;
  std::uint8_t unused[7] = {};
  std::uint64_t request = 0;
  std::uint64_t before = 0;
};

RemoteAtomics::RemoteAtomics(runtime::Runtime& runtime, runtime::HandlerId handler, Segments& segments)
    : runtime_(runtime), handler_(handler), segments_(segments), device_(runtime) {
  runtime_.set_urgent_handler(
      handler_,
      [](void* self, runtime::MessagePtr message) {
        static_cast<RemoteAtomics*>(self)->on_message(*message);
      },
      this);
}

void RemoteAtomics::close() {
  closed_ = true;
  device_.close();
  for (auto& [request, pending] : std::exchange(pending_, {})) {
    pending.state->complete(Status(StatusCode::kClosed, "the job has ended"), 0);
  }
}

void RemoteAtomics::start(const RemoteOperation& operation, runtime::OperationState* state) {
  KnownSegment* const segment = segments_.find(operation.address);
  if (segment != nullptr) expect_word(segments_, *segment, operation.address, operation.type);
  const std::uint64_t request = ++last_request_;
  pending_.emplace(request, Pending{state, operation, operation.address.pe()});
  if (segment != nullptr) {
    begin(request, operation, *segment);
  } else {
    runtime_.spawn(learn(request, operation.address), "an atomic operation on global memory");
  }
}

runtime::Task<> RemoteAtomics::learn(std::uint64_t request, GlobalAddress address) {
  Status status;
  try {
    runtime::Task<SegmentUse> reached = segments_.reach(address);
    const SegmentUse use = co_await std::move(reached);
    const auto found = pending_.find(request);
    if (found == pending_.end()) co_return;  // the job has ended
    const RemoteOperation operation = found->second.operation;
    expect_word(segments_, *use, operation.address, operation.type);
    begin(request, operation, *use);
  } catch (const Error& error) {
    status = Status(error.code(), error.what());
  }
  if (status.failed()) end(request, status, 0);
}

void RemoteAtomics::begin(std::uint64_t request, const RemoteOperation& operation, KnownSegment& segment) {
  const bool is_mine = segment.own.has_value();
  const bool is_reached = segment.is_reached() && segment.memory.place.is_host();
  if (is_mine || is_reached) {
    return serve(operation, segment, [this, request](const Status& status, std::uint64_t before) {
      end(request, status, before);
    });
  }
  Owner& owner = owners_[operation.address.pe()];
  if (owner.num_under_way == kMostUnderWay) return owner.waiting.push_back(request);
  ++owner.num_under_way;
  send_request(request, operation);
}

void RemoteAtomics::send_request(std::uint64_t request, const RemoteOperation& operation) {
  pending_.find(request)->second.is_sent = true;
  Request sent;
  sent.kind = operation.kind;
  sent.type = operation.type;
  sent.request = request;
  sent.address = operation.address;
  sent.operand = operation.operand;
  sent.compare = operation.compare;
  auto message = runtime::Message::create(runtime_, handler_, sizeof sent);
  std::memcpy(message->payload(), &sent, sizeof sent);
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  runtime_.send(operation.address.pe(), std::move(message));
}

void RemoteAtomics::serve(const RemoteOperation& operation, KnownSegment& segment,
                          DeviceAtomics::Ended ended) {
  const memory::Buffer word = segment.part(operation.address, atomic_bytes(operation.type));
  if (word.place.is_host()) {
    return ended({}, apply_atomic(operation.kind, operation.type, static_cast<std::byte*>(word.data),
                                  operation.operand, operation.compare));
  }
  device_.start({operation.kind, operation.type, word, segments_.use(segment), operation.operand,
                 operation.compare, std::move(ended)});
}

void RemoteAtomics::end(std::uint64_t request, const Status& status, std::uint64_t before) {
  const auto found = pending_.find(request);
  if (found == pending_.end()) return;
  runtime::OperationState* const state = found->second.state;
  const std::size_t size_bytes = atomic_bytes(found->second.operation.type);
  const int owner_pe = found->second.pe;
  const bool was_sent = found->second.is_sent;
  pending_.erase(found);
  if (was_sent) {
    Owner& owner = owners_[owner_pe];
    if (owner.waiting.empty()) {
      --owner.num_under_way;
    } else {
      const std::uint64_t next = owner.waiting.front();
      owner.waiting.pop_front();
      send_request(next, pending_.find(next)->second.operation);
    }
  }
  // Small numbers come first in memory, so a value of 4 bytes is where its reader looks.
  std::memcpy(state->extra(), &before, sizeof before);
  state->complete(status, size_bytes);
}

void RemoteAtomics::on_message(runtime::Message& message) {
  if (closed_) return;
  const int pe = static_cast<int>(message.envelope().source_pe);
  const std::size_t size_bytes = message.payload_bytes();
  if (size_bytes == sizeof(Request)) {
    Request request;
    std::memcpy(&request, message.payload(), sizeof request);
    return on_request(pe, request);
  }
  Answer answer;
  const bool fits = size_bytes == sizeof answer;
  if (fits) std::memcpy(&answer, message.payload(), sizeof answer);
  const auto found = pending_.find(answer.request);
  if (!fits || answer.code > StatusCode::kInternal || found == pending_.end() || !found->second.is_sent ||
      found->second.pe != pe) {
    base::refuse_claim(
        base::format("PE {} sent {} bytes that answer no atomic operation of this PE", pe, size_bytes));
  }
  Status status;
  if (answer.code != StatusCode::kOk) {
    const RemoteOperation& operation = found->second.operation;
    // The owner alone knows the address.
    const std::string why =
        answer.code == StatusCode::kInvalidArgument
            ? base::format("it needs an address that is a multiple of {}", atomic_bytes(operation.type))
            : std::string(base::status_code_name(answer.code));
    status = Status(answer.code, base::format("PE {} refused an atomic operation on {}: {}", pe,
                                              describe(operation.address), why));
  }
  end(answer.request, status, answer.before);
}

void RemoteAtomics::on_request(int pe, const Request& request) {
  const auto reply = [this, pe, number = request.request](const Status& status, std::uint64_t before) {
    Answer sent;
    sent.code = status.code();
    sent.request = number;
    sent.before = before;
    answer(pe, sent);
  };
  if (!is_atomic(request.kind, request.type) || request.address.pe() != runtime_.pe()) {
    return reply(Status(StatusCode::kInvalidArgument, "no such atomic operation"), 0);
  }
  try {
    KnownSegment& segment = *segments_.find(request.address);
    expect_word(segments_, segment, request.address, request.type);
    const RemoteOperation operation{request.kind, request.type, request.address, request.operand,
                                    request.compare};
    serve(operation, segment, reply);
  } catch (const Error& error) {
    reply(Status(error.code(), error.what()), 0);
  }
}

void RemoteAtomics::answer(int pe, const Answer& answer) {
  if (closed_) return;
  auto message = runtime::Message::create(runtime_, handler_, sizeof answer);
  std::memcpy(message->payload(), &answer, sizeof answer);
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  runtime_.send(pe, std::move(message));
}

}  // namespace weft::rma
