#include "models/channel/direct_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "machine/machine.h"
#include "machine/tag.h"
#include "models/channel/channels.h"
#include "models/channel/direct_operations.h"

namespace weft::channel {

using base::Status;
using base::StatusCode;

namespace {

// How long close() lets a peer's copy into memory of this PE end.
constexpr auto kCloseLimit = std::chrono::milliseconds(200);

// To the end that sends: its peer posts in this mailbox.
struct MailboxMessage {
  std::uint32_t to_end = 0;
  std::uint32_t from_end = 0;
  std::uint64_t mailbox = 0;
  MailboxFileName file;
};

}  // namespace

DirectPath::DirectPath(runtime::Runtime& runtime, Channels& channels)
    : runtime_(runtime),
      channels_(channels),
      exports_(runtime.memory(),
               [this](int pe, std::uint64_t number) { tell(pe, channels_.handler(kForget), number); }),
      imports_(runtime.memory()) {
  const auto handle = [this]<auto kMethod>(runtime::HandlerId id) {
    runtime_.set_handler(
        id,
        [](void* self, runtime::MessagePtr message) {
          (static_cast<DirectPath*>(self)->*kMethod)(std::move(message));
        },
        this);
  };
  handle.template operator()<&DirectPath::on_mailbox>(channels_.handler(kMailbox));
  handle.template operator()<&DirectPath::on_forget>(channels_.handler(kForget));
  handle.template operator()<&DirectPath::on_no_mailbox>(channels_.handler(kNoMailbox));
  // Its arrival is all that it is for.
  runtime_.set_handler(channels_.handler(kWake), [](void*, runtime::MessagePtr) {}, nullptr);
}

DirectPath::~DirectPath() = default;

template <class... Values>
void DirectPath::tell(int pe, runtime::HandlerId handler, const Values&... values) {
  runtime_.send(pe, runtime::Message::pack(runtime_, handler, values...));
}

std::vector<std::string> DirectPath::obstacles() const {
  std::vector<std::string> found;
  for (const Status* status :
       {&create_failure_, &open_failure_, &exports_.first_failure(), &imports_.first_failure()}) {
    if (status->failed()) found.emplace_back(status->message());
  }
  return found;
}

// --- Sending

bool DirectPath::send(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& source,
                      runtime::OperationState* operation) {
  if (copy(end, counter, source, operation)) return true;
  if (source.stream == nullptr) return false;
  auto late = std::make_unique<LateSend>(*this, end, counter, source, operation);
  if (!runtime_.memory().when_stream_done(source.place, source.stream, late.get()).is_pending()) return false;
  static_cast<void>(late.release());
  return true;
}

// The compare-and-swap comes first: it brings the cache line here once, and to stay.
bool DirectPath::copy(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& source,
                      runtime::OperationState* operation) {
  Slot& slot = end.direct.outbox->slot(counter);
  std::uint64_t posted = Slot::posted(counter);
  if (!slot.word.compare_exchange_strong(posted, Slot::taken(counter))) return false;
  if (start_copy(end, counter, slot, source, operation)) return true;
  // The message goes with its tag, and no copy is to be waited for if that fails.
  slot.word.store(posted, std::memory_order_release);
  return false;
}

bool DirectPath::start_copy(ChannelEnd& end, std::uint32_t counter, Slot& slot,
                            const memory::ConstBuffer& source, runtime::OperationState* operation) {
  const Posting posting = slot.posting;
  // Sizes that disagree are told of on the tagged path.
  if (posting.size_bytes != source.size_bytes || posting.exported_bytes > kMaxExportedBytes) return false;
  const std::span exported(slot.exported.data(), posting.exported_bytes);
  Imports::Import* const import =
      imports_.find(static_cast<int>(end.peer.pe), posting, exported, source.place);
  if (import == nullptr) return false;
  if (posting.offset_bytes > import->mapped.size_bytes ||
      posting.size_bytes > import->mapped.size_bytes - posting.offset_bytes) {
    runtime_.fail(fmt::format(
        "{}: PE {} posted {} bytes at offset {} of an allocation of {} bytes, which cannot be", describe(end),
        end.peer.pe, posting.size_bytes, posting.offset_bytes, import->mapped.size_bytes));
    return false;
  }
  memory::Buffer destination = import->mapped;
  destination.data = static_cast<std::byte*>(destination.data) + posting.offset_bytes;
  destination.size_bytes = posting.size_bytes;
  auto copy = std::make_unique<Copy>(*this, end, counter, slot, *import, operation);
  copy->size_bytes = posting.size_bytes;
  if (!runtime_.memory().copy(destination, source, copy.get()).is_pending()) return false;
  static_cast<void>(copy.release());
  ++import->copies_under_way;
  runtime_.machine().count_transfer(machine::TransferType::kPeerCopy, machine::TransferPath::kPeerMapped,
                                    source.place.kind, source.size_bytes);
  return true;
}

void DirectPath::stream_is_done(const LateSend& late, Status status) {
  if (status.failed()) {
    late.operation->complete(std::move(status), 0);
    return;
  }
  memory::ConstBuffer source = late.source;
  source.stream = nullptr;
  if (!copy(late.end, late.counter, source, late.operation)) {
    send_tagged(late.end, late.counter, source, late.operation);
  }
}

void DirectPath::copied(Copy& copy, Status status) {
  imports_.copy_done(copy.import);
  if (status.ok()) {
    copy.slot.outcome.store(Slot::done(copy.counter), std::memory_order_release);
    wake(copy.end);
  }
  const std::size_t size_bytes = status.ok() ? copy.size_bytes : 0;
  copy.operation->complete(std::move(status), size_bytes);
}

void DirectPath::wake(const ChannelEnd& end) {
  // Orders the outcome before this look; before_sleep() does it the other way round, so one sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (end.direct.outbox_owner->is_asleep.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  runtime_.send(static_cast<int>(end.peer.pe),
                runtime::Message::create(runtime_, channels_.handler(kWake), 0));
}

// --- Receiving

bool DirectPath::can_post(ChannelEnd& end) {
  if (end.direct.inbox != nullptr) return is_on_;
  if (end.direct.has_asked || end.peer.number == 0 || !is_on_) return false;
  end.direct.has_asked = true;
  if (runtime_.machine().may_pass_by(static_cast<int>(end.peer.pe))) open_inbox(end);
  return end.direct.inbox != nullptr;
}

bool DirectPath::receive(ChannelEnd& end, std::uint32_t counter, const memory::Buffer& buffer,
                         runtime::OperationState* operation) {
  if (!can_post(end)) return false;
  std::shared_ptr<Exports::Export> exported = exports_.find(buffer);
  if (exported == nullptr) return false;
  receives_.push_back(std::make_unique<Receive>(*this, end, counter, buffer, operation));
  Receive& receive = *receives_.back();
  const machine::Tag tag = end.receive_tags[counter];
  Status status = runtime_.machine().tag_receive(tag, machine::kFullTagMask, buffer, &receive.tagged);
  if (!status.is_pending()) {
    receives_.pop_back();
    operation->started(std::move(status), buffer.size_bytes);
    return true;
  }
  receive.tagged.is_pending = true;
  if (buffer.stream == nullptr) {
    offer(receive, std::move(exported));
  } else {
    // The tagged path alone remains for a stream that cannot be waited for.
    receive.stream_done.is_pending =
        runtime_.memory().when_stream_done(buffer.place, buffer.stream, &receive.stream_done).is_pending();
  }
  if (!std::exchange(is_polling_, true)) runtime_.start_polling(this);
  return true;
}

void DirectPath::offer(Receive& receive, std::shared_ptr<Exports::Export> exported) {
  Slot& slot = receive.end.direct.inbox->slot(receive.counter);
  if (slot.word.load(std::memory_order_relaxed) != Slot::kFree) return;  // of a message kSlots before
  const memory::Allocation& allocation = exported->allocation;
  // Of the last message with this number, if no other has come this way since.
  if (slot.outcome.load(std::memory_order_relaxed) == Slot::done(receive.counter)) slot.outcome.store(0);
  exported->tell(static_cast<int>(receive.end.peer.pe));
  slot.posting = {exported->number,
                  allocation.base,
                  reinterpret_cast<std::uintptr_t>(receive.buffer.data) - allocation.base,
                  receive.buffer.size_bytes,
                  allocation.place,
                  static_cast<std::uint32_t>(exported->bytes.size())};
  std::ranges::copy(exported->bytes, slot.exported.begin());
  slot.word.store(Slot::posted(receive.counter), std::memory_order_release);
  receive.slot = &slot;
  receive.exported = std::move(exported);
}

void DirectPath::stream_is_done(Receive& receive) {
  if (receive.is_over()) return;
  if (auto exported = exports_.find(receive.buffer)) offer(receive, std::move(exported));
}

// The message has come with its tag, or will not come so any more.
void DirectPath::tagged_ended(Receive& receive, Status status, std::size_t size_bytes) {
  if (receive.is_over()) return;
  // With its tag a message comes only when its sender has decided so.
  const bool has_come = status.ok() || status.code() == StatusCode::kTruncated;
  if (has_come || receive.take_back()) {
    receive.end_with(std::move(status), size_bytes);
  } else {
    receive.operation->set_outcome(std::move(status), 0);  // for close()
  }
}

bool DirectPath::look(Receive& receive) {
  if (receive.is_over()) {
    if (receive.tagged.is_pending) runtime_.machine().cancel(&receive.tagged);
    return false;
  }
  if (!receive.is_copied()) return false;
  receive.end_with(Status(), receive.buffer.size_bytes);
  return true;
}

bool DirectPath::poll() {
  if (std::exchange(is_asleep_, false)) own_mailboxes_->owner().is_asleep.store(0, std::memory_order_relaxed);
  bool any = false;
  for (const auto& receive : receives_) any |= look(*receive);
  std::erase_if(receives_, [](const auto& receive) { return receive->can_go(); });
  if (receives_.empty() && std::exchange(is_polling_, false)) runtime_.stop_polling(this);
  return any;
}

bool DirectPath::before_sleep() {
  is_asleep_ = true;
  own_mailboxes_->owner().is_asleep.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return std::ranges::none_of(receives_,
                              [](const auto& receive) { return receive->is_over() || receive->is_copied(); });
}

// --- Messages

void DirectPath::open_inbox(ChannelEnd& end) {
  if (!own_mailboxes_ && create_failure_.ok()) {
    auto file = MailboxFile::create();
    create_failure_ = file.status();
    if (file.ok()) own_mailboxes_ = std::move(file).value();
  }
  if (!own_mailboxes_ || num_mailboxes_ == kMailboxes) return;
  const std::size_t number = num_mailboxes_++;
  end.direct.inbox = &own_mailboxes_->mailbox(number);
  tell(static_cast<int>(end.peer.pe), channels_.handler(kMailbox),
       MailboxMessage{end.peer.number, end.number, number, own_mailboxes_->name()});
}

void DirectPath::on_mailbox(runtime::MessagePtr message) {
  MailboxMessage mailbox;
  Pup p = message->unpacker();
  p | mailbox;
  const std::uint32_t pe = message->envelope().source_pe;
  ChannelEnd* const end = channels_.find(mailbox.to_end, {pe, mailbox.from_end});
  if (end == nullptr || mailbox.mailbox >= kMailboxes) {
    runtime_.fail(
        fmt::format("PE {} offers mailbox {} of its channel end {} to end {} of PE {}, which cannot be", pe,
                    mailbox.mailbox, mailbox.from_end, mailbox.to_end, runtime_.pe()));
    return;
  }
  auto [file, is_new] = peer_mailboxes_.try_emplace(static_cast<int>(pe));
  if (is_new) {
    auto opened = MailboxFile::open(mailbox.file);
    if (opened.ok()) {
      file->second = std::move(opened).value();
    } else if (open_failure_.ok()) {
      open_failure_ = opened.status();
    }
  }
  if (!file->second) return tell(static_cast<int>(pe), channels_.handler(kNoMailbox), mailbox.from_end);
  end->direct.outbox = &file->second->mailbox(mailbox.mailbox);
  end->direct.outbox_owner = &file->second->owner();
}

// A PE of another host, or one that cannot look into this process: what was posted comes with its tag.
void DirectPath::on_no_mailbox(runtime::MessagePtr message) {
  std::uint32_t number = 0;
  Pup p = message->unpacker();
  p | number;
  ChannelEnd* const end = channels_.find(number);
  if (end == nullptr || end->peer.pe != message->envelope().source_pe) return;
  end->direct.inbox = nullptr;
  end->direct.has_asked = true;
}

void DirectPath::on_forget(runtime::MessagePtr message) {
  std::uint64_t number = 0;
  Pup p = message->unpacker();
  p | number;
  imports_.forget(static_cast<int>(message->envelope().source_pe), number);
}

// --- The end

void DirectPath::close() {
  // What a sender has taken may still be written to; the memory must stay as long, unless the sender is gone.
  const auto limit = std::chrono::steady_clock::now() + kCloseLimit;
  for (const auto& receive : receives_) {
    while (!receive->is_over() && !receive->is_copied() && std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
    if (!receive->is_over()) receive->end_with(receive->operation->status(), 0);
  }
  if (std::exchange(is_polling_, false)) runtime_.stop_polling(this);
  receives_.clear();
  imports_.close();
}

}  // namespace weft::channel
