#include "models/pgas/team/exchange.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/runtime/remote_error.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::pgas {

namespace {

std::exception_ptr invalid(const std::string& what) {
  return std::make_exception_ptr(base::Error(base::StatusCode::kInvalidArgument, what));
}

[[noreturn]] void refuse_part(int from, std::string_view why) {
  base::refuse_claim(base::format("rank {} sent a part of a collective {}", from, why),
                     "do all ranks of the team call the same collectives in the same order?");
}

}  // namespace

// --- Collectives

std::uint32_t Exchange::begin(const CollectiveType& type) {
  const auto collective = static_cast<std::uint32_t>(next_++);
  last_[collective % last_.size()] = type;
  const auto early = collectives_.find(collective);
  if (early == collectives_.end()) [[likely]]
    return collective;
  for (const PartEntry& entry : early->second.entries) {
    PartHeader header;
    (entry.arrived != nullptr ? entry.arrived : entry.deferred)->unpacker() | header;
    if (header.type != type) fail_different(type, header.type, entry.from);
  }
  return collective;
}

std::uint32_t Exchange::begin_parts(const CollectiveType& type) {
  const std::uint32_t collective = begin(type);
  inbox_.begin(collectives_[collective].begun.emplace(engine_number(collective, type)));
  return collective;
}

void Exchange::end(std::uint32_t collective) {
  const auto found = collectives_.find(collective);
  inbox_.end(*found->second.begun);
  collectives_.erase(found);
}

std::optional<CollectiveType> Exchange::type_of(std::uint32_t collective) const {
  if (age_of(collective) <= static_cast<std::int32_t>(last_.size())) return last_[collective % last_.size()];
  const collective::Awaiting* const call = inbox_.call_with(collective);
  return call == nullptr ? std::nullopt : std::optional(type_in(call->number()));
}

void Exchange::check(int from, std::uint64_t number) {
  const auto collective = static_cast<std::uint32_t>(number);
  if (age_of(collective) <= 0) return;
  const std::optional<CollectiveType> mine = type_of(collective);
  if (mine && *mine != type_in(number)) fail_different(*mine, type_in(number), from);
}

void Exchange::fail_different(const CollectiveType& mine, const CollectiveType& theirs, int from) {
  messenger_.fail(base::format("PE {}: {}", messenger_.pe(), difference(mine, theirs, from)));
}

Exchange::PartEntry* Exchange::find(Collective& collective, int from, std::uint32_t step) {
  for (PartEntry& entry : collective.entries) {
    if (entry.from == from && entry.step == step) return &entry;
  }
  return nullptr;
}

Exchange::PartEntry* Exchange::find(int from, std::uint32_t collective, std::uint32_t step) {
  const auto found = collectives_.find(collective);
  return found == collectives_.end() ? nullptr : find(found->second, from, step);
}

Exchange::PartEntry* Exchange::entry_of(int from, const PartHeader& header) {
  if (header.step >= kMostSteps) refuse_part(from, "in a step that does not exist");
  if (age_of(header.collective) > 0) {
    const std::optional<CollectiveType> mine = type_of(header.collective);
    if (mine && *mine != header.type) {
      fail_different(*mine, header.type, from);
      return nullptr;
    }
    if (!collectives_.contains(header.collective)) refuse_part(from, "that is over");
  }
  Collective& collective = collectives_[header.collective];
  PartEntry* const entry = find(collective, from, header.step);
  if (entry == nullptr)
    return &collective.entries.emplace_back(PartEntry{header.step, from, nullptr, {}, {}});
  const bool is_landing = entry->receive != nullptr && entry->receive->is_landing_;
  if (entry->arrived != nullptr || entry->deferred != nullptr || is_landing)
    refuse_part(from, "a second time");
  return entry;
}

// --- Sending

runtime::MessagePtr Exchange::make_message(const PartId& part, bool failed, std::size_t size_bytes) {
  runtime::MessagePtr message =
      runtime::Message::create(messenger_, handler_, sizeof(PartHeader) + size_bytes);
  const PartHeader header{members_.id(), part.collective, part.type, part.step, failed ? 1U : 0U};
  Pup::packer(message->payload(), sizeof header) | header;
  return message;
}

void Exchange::send_to(int rank, runtime::MessagePtr message) {
  messenger_.send(members_.pe_of(rank), std::move(message));
}

void Exchange::send(int to, const PartId& part, std::span<const std::byte> bytes) {
  runtime::MessagePtr message = make_message(part, false, bytes.size());
  std::ranges::copy(bytes, message->payload() + sizeof(PartHeader));
  send_to(to, std::move(message));
}

void Exchange::send_error(int to, const PartId& part, const std::exception_ptr& error) {
  Pup sizer = Pup::sizer(&messenger_.runtime());
  runtime::pack_error(sizer, error);
  runtime::MessagePtr message = make_message(part, true, sizer.offset_bytes());
  Pup p = Pup::packer(message->payload() + sizeof(PartHeader), sizer.offset_bytes(), &messenger_.runtime());
  runtime::pack_error(p, error);
  send_to(to, std::move(message));
}

runtime::Operation Exchange::send_buffer(int to, const PartId& part, const memory::Buffer& buffer) {
  runtime::MessagePtr message = make_message(part, false, 0);
  message->attach(runtime::Attachment(buffer));
  runtime::OperationState* const sending = runtime::report_sending(messenger_, *message);
  return runtime::Operation(runtime::send_reported(sending, [&] { send_to(to, std::move(message)); }));
}

// --- Receiving

void Exchange::add(Receive& receive) {
  const PartId& id = receive.id_;
  Collective& collective = collectives_[id.collective];
  PartEntry* const entry = find(collective, receive.from_, id.step);
  if (entry == nullptr) {
    collective.entries.push_back({id.step, receive.from_, &receive, {}, {}});
    return;
  }
  entry->receive = &receive;
  PartHeader header;
  if (entry->arrived != nullptr) {
    runtime::MessagePtr message = std::move(entry->arrived);
    message->unpacker() | header;
    return give(receive, header, std::move(message));
  }
  runtime::MessagePtr message = std::move(entry->deferred);
  message->unpacker() | header;
  std::vector<runtime::ReceiveBuffer> receive_buffers = messenger_.receive_buffers_of(*message);
  if (choose(receive, header, receive_buffers)) messenger_.place(std::move(message), receive_buffers);
}

void Exchange::remove(Receive& receive) {
  const auto collective = collectives_.find(receive.id_.collective);
  if (collective == collectives_.end()) return;
  std::erase_if(collective->second.entries,
                [&](const PartEntry& entry) { return entry.receive == &receive; });
}

void Exchange::finish(Receive& receive) {
  remove(receive);
  receive.is_done_ = true;
  if (receive.handle) messenger_.post(&receive);
}

void Exchange::give(Receive& receive, const PartHeader& header, runtime::MessagePtr message) {
  Part& part = receive.part_;
  const bool is_buffer = message->has_attachments();
  if (header.failed != 0) {
    Pup p = message->unpacker();
    p.skip(sizeof header);
    part.error = runtime::unpack_error(p);
  } else if (is_buffer != receive.takes_buffer_) {
    part.error =
        invalid(base::format("rank {} sent data of another form than this rank expects", receive.from_));
  } else {
    part.bytes = std::as_bytes(message->payload_span()).subspan(sizeof header);
  }
  part.message = std::move(message);
  finish(receive);
}

bool Exchange::choose(Receive& receive, const PartHeader& header,
                      std::span<runtime::ReceiveBuffer> receive_buffers) {
  std::exception_ptr& error = receive.part_.error;
  if (receive_buffers.size() != 1 || !receive.takes_buffer_) {
    error = invalid(base::format("rank {} sent data of another form than this rank expects", receive.from_));
  } else if (receive_buffers[0].size_bytes != receive.into_.size_bytes) {
    error = wrong_size(header.type.kind(), receive.from_, receive_buffers[0].size_bytes, members_.rank(),
                       receive.into_.size_bytes);
  }
  if (error) {
    finish(receive);
    return false;
  }
  receive.is_landing_ = true;
  receive_buffers[0].into = runtime::Attachment(receive.into_);
  return true;
}

void Exchange::arrive(int from, const PartHeader& header, runtime::MessagePtr message) {
  if (message->was_posted()) return landed(from, header, std::move(message));
  PartEntry* const entry = entry_of(from, header);
  if (entry == nullptr) return;
  if (entry->receive != nullptr) {
    give(*entry->receive, header, std::move(message));
  } else {
    entry->arrived = std::move(message);
  }
}

// The buffer that post() or add() has given a place.
void Exchange::landed(int from, const PartHeader& header, runtime::MessagePtr message) {
  const PartEntry* const entry = find(from, header.collective, header.step);
  if (entry != nullptr && entry->receive != nullptr) give(*entry->receive, header, std::move(message));
}

runtime::Posting Exchange::post(int from, const PartHeader& header, runtime::MessagePtr& message,
                                std::span<runtime::ReceiveBuffer> receive_buffers) {
  PartEntry* const entry = entry_of(from, header);
  if (entry == nullptr) return runtime::Posting::kDrop;
  if (entry->receive == nullptr) {
    entry->deferred = std::move(message);
    return runtime::Posting::kDefer;
  }
  return choose(*entry->receive, header, receive_buffers) ? runtime::Posting::kHandle
                                                          : runtime::Posting::kDrop;
}

void Exchange::dropped(int from, const PartHeader& header) {
  const PartEntry* const entry = find(from, header.collective, header.step);
  if (entry == nullptr || entry->receive == nullptr) return;
  Receive& receive = *entry->receive;
  receive.part_.error = std::make_exception_ptr(base::Error(
      base::StatusCode::kPeerFailed,
      base::format("the data of rank {} for {} could not be sent", from, name_of(header.type.kind()))));
  finish(receive);
}

// --- Receive

Receive::Receive(Exchange& exchange, int from, const PartId& part, const memory::Buffer* into)
    : exchange_(exchange), from_(from), id_(part), takes_buffer_(into != nullptr) {
  if (into != nullptr) into_ = *into;
  exchange_.add(*this);
}

Receive::~Receive() {
  if (!is_done_) exchange_.remove(*this);
}

void Receive::wait(std::coroutine_handle<> waiting) { suspend(waiting, exchange_.messenger().meter()); }

}  // namespace weft::pgas
