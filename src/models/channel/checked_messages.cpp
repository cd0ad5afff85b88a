#include "models/channel/checked_messages.h"

#include <memory>
#include <new>
#include <utility>

#include "base/format.h"
#include "checkpoint/crc32c.h"

namespace weft::channel {

using base::Status;
using base::StatusCode;

namespace {

struct Named {
  std::uint32_t to_end = 0;
  std::uint32_t from_end = 0;
  std::uint32_t counter = 0;
};

}  // namespace

// A receive in check mode. Deletes itself.
struct CheckedMessages::Receive : base::Completion {
  Receive(CheckedMessages& checks_in, const ChannelEnd& end_in, std::uint32_t counter_in,
          Description expected_in, runtime::OperationState* operation_in)
      : base::Completion([](base::Completion* self, Status status, std::size_t size_bytes) {
          auto& receive = *static_cast<Receive*>(self);
          receive.checks.data_arrived(receive, std::move(status), size_bytes);
        }),
        checks(checks_in),
        end(end_in),
        counter(counter_in),
        expected(std::move(expected_in)),
        operation(operation_in) {}

  Key key() const { return {end.number, counter}; }

  CheckedMessages& checks;
  const ChannelEnd& end;
  std::uint32_t counter;
  Description expected;
  runtime::OperationState* operation;
  std::size_t size_bytes = 0;
};

CheckedMessages::CheckedMessages(runtime::Runtime& runtime, const EndTable& ends, runtime::HandlerId handler)
    : runtime_(runtime), ends_(ends), handler_(handler) {
  runtime_.set_handler(
      handler_,
      [](void* self, runtime::MessagePtr message) {
        static_cast<CheckedMessages*>(self)->on_message(std::move(message));
      },
      this);
}

void CheckedMessages::tell(const ChannelEnd& end, std::uint32_t counter, const Description& description) {
  const Named name{end.peer.number, end.number, counter};
  runtime_.send(static_cast<int>(end.peer.pe),
                runtime::Message::pack(runtime_, handler_, name, description.type, description.extents));
}

void CheckedMessages::on_message(runtime::MessagePtr message) {
  Named name;
  Description description;
  Pup p = message->unpacker();
  p | name | description.type | description.extents;
  const std::uint32_t pe = message->envelope().source_pe;
  if (ends_.find(name.to_end, {pe, name.from_end}) == nullptr) {
    if (ends_.is_gone(name.to_end)) return;
    runtime_.fail(base::format(
        "PE {} described message {} from its channel end {} to end {} of PE {}; these ends are not connected",
        pe, name.counter, name.from_end, name.to_end, runtime_.pe()));
    return;
  }
  describe({name.to_end, name.counter}, std::move(description));
}

void CheckedMessages::expect_none(const ChannelEnd& end, std::uint32_t counter) {
  describe({end.number, counter}, Description());
}

void CheckedMessages::describe(Key key, Description description) {
  descriptions_[key] = std::move(description);
  if (auto found = waiting_.extract(key); !found.empty()) finish(*found.mapped(), {});
}

base::Completion* CheckedMessages::expect(const ChannelEnd& end, std::uint32_t counter,
                                          Description description, runtime::OperationState* operation) {
  return new Receive(*this, end, counter, std::move(description), operation);
}

void CheckedMessages::started(base::Completion* data, Status status, std::size_t size_bytes) {
  if (!status.is_pending()) data_arrived(*static_cast<Receive*>(data), std::move(status), size_bytes);
}

void CheckedMessages::data_arrived(Receive& receive, Status status, std::size_t size_bytes) {
  receive.size_bytes = size_bytes;
  if (status.failed() || descriptions_.contains(receive.key())) return finish(receive, std::move(status));
  waiting_.emplace(receive.key(), &receive);
}

void CheckedMessages::finish(Receive& receive, Status status) {
  const std::unique_ptr<Receive> over(&receive);
  const auto sent = descriptions_.extract(receive.key());
  if (status.ok() && !sent.empty() && !sent.mapped().agrees_with(receive.expected)) {
    status =
        Status(StatusCode::kInvalidArgument,
               base::format("it asks for {}, and the message is {}; both ends must name the same elements",
                            receive.expected.text(), sent.mapped().text()));
  }
  receive.operation->complete(std::move(status), receive.size_bytes);
}

void CheckedMessages::close() {
  const Status closed{StatusCode::kClosed, "the job ended before the sender had described the message"};
  for (auto& [key, receive] : std::exchange(waiting_, {})) finish(*receive, closed);
}

// --- The bytes of sends in place

void UnchangedSends::note(runtime::OperationState* operation, std::size_t before,
                          const memory::ConstBuffer& buffer) {
  new (operation->extra() + aligned(before))
      SentBytes{buffer.data, buffer.size_bytes, checkpoint_files::crc32c(buffer.data, buffer.size_bytes)};
}

void UnchangedSends::check(runtime::OperationState* operation, std::size_t before, const ChannelEnd& end,
                           std::uint32_t counter) {
  if (operation->status().failed()) return;
  const auto& sent = *reinterpret_cast<const SentBytes*>(operation->extra() + aligned(before));
  if (checkpoint_files::crc32c(sent.data, sent.size_bytes) == sent.checksum) return;
  operation->set_outcome(
      base::Status(
          base::StatusCode::kInvalidArgument,
          base::format("{}: the buffer of send {} ({} bytes at {}) was changed before the send was over; "
                       "await the send before you write to its buffer, or send a copy",
                       describe(end), counter, sent.size_bytes, sent.data)),
      sent.size_bytes);
}

}  // namespace weft::channel
