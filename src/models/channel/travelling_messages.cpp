#include "models/channel/travelling_messages.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "weft/runtime/attachment.h"

#include "base/format.h"
#include "machine/machine.h"
#include "machine/peer_memory/peer_memory.h"
#include "models/channel/failed_sends.h"

namespace weft::channel {

using base::Completion;
using base::Status;

namespace {

// A message on its way to the own PE. Deletes itself.
struct Given : Completion {
  Given(runtime::Runtime& runtime_in, std::vector<std::byte> bytes_in)
      : Completion([](Completion* self, Status status, std::size_t) {
          const std::unique_ptr<Given> given(static_cast<Given*>(self));
          given->ended(status);
        }),
        runtime(runtime_in),
        bytes(std::move(bytes_in)) {}
  void ended(const Status& status) const {
    if (status.ok() || runtime.exiting() || status.code() == base::StatusCode::kClosed) return;
    runtime.fail(base::format("a channel message that PE {} has kept could not be received: {}", runtime.pe(),
                              status.to_string()));
  }

  runtime::Runtime& runtime;
  std::vector<std::byte> bytes;
};

}  // namespace

struct TravellingMessages::Arriving : Completion {
  Arriving(TravellingMessages& owner_in, std::uint32_t number, std::size_t size_bytes)
      : Completion([](Completion* self, Status status, std::size_t received_bytes) {
          static_cast<Arriving*>(self)->arrived(status, received_bytes);
        }),
        owner(&owner_in),
        end(owner_in.end_) {
    message.number = number;
    message.bytes.resize(size_bytes);
  }

  void arrived(const Status& status, std::size_t received_bytes) {
    is_pending = false;
    if (owner == nullptr && status.failed()) {  // cancelled; the end may be gone
      delete this;
      return;
    }
    if (status.failed() && !end.runtime->exiting() && status.code() != base::StatusCode::kClosed) {
      end.runtime->fail(base::format("{}: message {} could not be received for a move: {}", describe(end),
                                     message.number, status.to_string()));
    }
    message.bytes.resize(status.ok() ? received_bytes : 0);
    message.bytes.shrink_to_fit();
    if (message.bytes.empty()) message.why = end.failed_sends->take_reason(end, message.number);
    if (owner == nullptr) {
      const std::unique_ptr<Arriving> self(this);
      if (status.ok()) give(end, std::move(message));
      return;
    }
    --owner->num_arriving_;
    owner->settled_();
  }

  TravellingMessages* owner;  // null: given back
  ChannelEnd& end;
  TravellingMessage message;
  bool is_pending = false;
};

TravellingMessages::~TravellingMessages() {
  for (Arriving* const one : messages_) {
    if (one->is_pending) {
      one->owner = nullptr;
    } else {
      delete one;
    }
  }
}

void TravellingMessages::take_next(std::size_t size_bytes) {
  const std::uint32_t number = end_.in.next++;
  auto* const arriving = new Arriving(*this, number, size_bytes);
  messages_.push_back(arriving);
  ++end_.num_kept;
  if (const runtime::Attachment block = end_.handed_over.take(number)) {
    const auto* const bytes = static_cast<const std::byte*>(block.buffer().data);
    arriving->message.bytes.assign(bytes, bytes + block.buffer().size_bytes);
    return;
  }
  const memory::Buffer into{arriving->message.bytes.data(), size_bytes, {}, nullptr};
  Status status = end_.runtime->machine().peer_memory().receive_by_tag(
      end_.in, {number, end_.receive_tags[number]}, into, arriving);
  ++num_arriving_;
  arriving->is_pending = true;
  if (!status.is_pending()) arriving->arrived(status, size_bytes);
}

void TravellingMessages::give_back() {
  if (messages_.empty()) return;
  end_.in.next = messages_.front()->message.number;
  end_.num_kept = 0;
  for (Arriving* const one : std::exchange(messages_, {})) {
    if (one->is_pending) {
      // If it has arrived already, it is given back when its completion runs.
      one->owner = nullptr;
      end_.runtime->machine().cancel(one);
      continue;
    }
    give(end_, std::move(one->message));
    delete one;
  }
  num_arriving_ = 0;
}

void TravellingMessages::pack(Pup& p) const {
  p.count(messages_.size(), 1);
  for (Arriving* const one : messages_) p | one->message;
}

void TravellingMessages::give(ChannelEnd& end, TravellingMessage message) {
  if (!message.why.empty()) return end.failed_sends->end_receive(end, message.number, std::move(message.why));
  auto given = std::make_unique<Given>(*end.runtime, std::move(message.bytes));
  const memory::ConstBuffer from{given->bytes.data(), given->bytes.size(), {}, nullptr};
  const Status status =
      end.runtime->machine().tag_send(end.runtime->pe(), end.receive_tags[message.number], from, given.get());
  if (status.is_pending()) {
    static_cast<void>(given.release());
  } else {
    given->ended(status);
  }
}

}  // namespace weft::channel
