#include "models/channel/channels.h"

#include <fmt/format.h>

#include "machine/machine.h"
#include "machine/tag.h"
#include "memory/memory.h"

namespace weft::channel {

namespace {

// Follows the EntryHeader, by which the message finds the peer.
struct Announcement {
  ChannelKey key;  // as the receiver of the announcement sees it
  EndAddress from;
};

// What a receive was to be, in its operation's extra bytes.
struct Asked {
  std::size_t size_bytes;
  std::uint32_t counter;
};

inline base::Status tag_send(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& buffer,
                             runtime::OperationState* operation) {
  return end.runtime->machine().tag_send(static_cast<int>(end.peer.pe), end.send_tags[counter], buffer,
                                         operation->completion());
}

// Out of line, so that host memory does not pay for it.
[[gnu::noinline]] void start_device_send(ChannelEnd& end, std::uint32_t counter,
                                         const memory::ConstBuffer& buffer,
                                         runtime::OperationState* operation) {
  Channels& channels = *end.channels;
  FailedSends::watch(end, counter, operation);
  if (channels.local_path().send(end, counter, buffer, operation)) return;
  if (end.direct.outbox != nullptr && channels.direct_path().send(end, counter, buffer, operation)) return;
  send_tagged(end, counter, buffer, operation);
}

[[gnu::always_inline]] inline void start_send(ChannelEnd& end, const memory::ConstBuffer& buffer,
                                              runtime::OperationState* operation) {
  const std::uint32_t counter = end.next_send++;
  if (!buffer.place.is_host()) [[unlikely]]
    return start_device_send(end, counter, buffer, operation);
  base::Status status = tag_send(end, counter, buffer, operation);
  // Host memory that the machine has taken fails only with the peer, and then the job ends.
  if (status.failed()) [[unlikely]]
    end.channels->failed_sends().tell(end, counter, status);
  operation->started(std::move(status), buffer.size_bytes);
}

// Whether the receive of message `counter` was started past the machine, or on both paths.
[[gnu::noinline]] bool start_device_receive(ChannelEnd& end, std::uint32_t counter,
                                            const memory::Buffer& buffer,
                                            runtime::OperationState* operation) {
  Channels& channels = *end.channels;
  return channels.local_path().receive(end, counter, buffer, operation) ||
         (!buffer.place.is_host() && channels.direct_path().receive(end, counter, buffer, operation));
}

// For a receive that has not got what it asked for, or nothing: an empty message may stand for a send that
// failed.
[[gnu::noinline]] void explain_received(runtime::OperationState* operation, const ChannelEnd& end,
                                        const Asked& asked) {
  const std::size_t size_bytes = operation->size_bytes();
  base::StatusCode code = operation->status().code();
  std::string why(operation->status().message());
  if (code == base::StatusCode::kOk && size_bytes == 0) {
    why = end.channels->failed_sends().take_reason(end, asked.counter);
    if (!why.empty()) code = base::StatusCode::kPeerFailed;
  }
  if (code != base::StatusCode::kOk) {
    why = fmt::format("{}: a receive of {} bytes: {}", describe(end), asked.size_bytes, why);
  } else if (size_bytes != asked.size_bytes) {
    code = base::StatusCode::kTruncated;
    why = fmt::format("{}: a receive of {} bytes met a send of {} bytes; both ends must name the same size",
                      describe(end), asked.size_bytes, size_bytes);
  } else {
    return;
  }
  operation->set_outcome(base::Status(code, std::move(why)), size_bytes);
}

// A receive must have got exactly what it asked for.
void check_received(runtime::OperationState* operation, void* context) {
  const auto& end = *static_cast<ChannelEnd*>(context);
  end.runtime->count_processed();
  const auto& asked = *reinterpret_cast<const Asked*>(operation->extra());
  const std::size_t size_bytes = operation->size_bytes();
  if (operation->status().ok() && size_bytes == asked.size_bytes && size_bytes != 0) [[likely]]
    return;
  explain_received(operation, end, asked);
}

}  // namespace

std::string describe(const ChannelEnd& end) {
  auto& chares = end.runtime->model<chare::Chares>();
  return fmt::format("the channel {} - {}, id {}, on PE {}",
                     chares.collection(end.key.self_collection).element_name(end.key.self_index),
                     chares.collection(end.key.peer_collection).element_name(end.key.peer_index), end.key.id,
                     end.runtime->pe());
}

void send_tagged(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& buffer,
                 runtime::OperationState* operation) {
  operation->started(tag_send(end, counter, buffer, operation), buffer.size_bytes);
}

// --- The model

Channels::Channels(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : runtime_(runtime),
      range_(range),
      local_path_(runtime, *this),
      direct_path_(runtime, *this),
      failed_sends_(runtime, *this) {
  runtime_.set_handler(
      handler(kAnnouncement),
      [](void* context, runtime::MessagePtr message) {
        static_cast<Channels*>(context)->on_announcement(std::move(message));
      },
      this);
}

void Channels::close() {
  // Sends whose peer never appeared: nobody is left to wait for them.
  for (auto& [key, end] : ends_) {
    for (ChannelEnd::WaitingSend& send : end->waiting_sends) {
      send.operation->complete(
          base::Status(base::StatusCode::kClosed, "the job ended before the peer made its end"), 0);
    }
    end->waiting_sends.clear();
    LocalPath::close(*end);
  }
  direct_path_.close();
}

std::vector<runtime::ModelOption> Channels::options() {
  return {{"WEFT_CHANNEL_PATH", "auto or tagged", [this](std::string_view value) {
             if (value == "tagged") {
               local_path_.turn_off();
               direct_path_.turn_off();
             }
             return value == "auto" || value == "tagged";
           }}};
}

std::vector<std::string> Channels::report() const {
  std::vector<std::string> lines;
  for (const std::string& why : direct_path_.obstacles()) {
    lines.push_back(fmt::format("channels could not use mapped memory: {}", why));
  }
  return lines;
}

std::string Channels::obstacle_to_moving(runtime::ElementId element) const {
  for (auto found = ends_.lower_bound({element.collection, element.index, 0, 0, 0});
       found != ends_.end() && found->first.self_collection == element.collection &&
       found->first.self_index == element.index;
       ++found) {
    const ChannelEnd& end = *found->second;
    if (!end.waiting_sends.empty()) {
      return fmt::format("{} has {} sends that wait for its peer", describe(end), end.waiting_sends.size());
    }
    if (!end.local.receives.empty() || !end.local.held_sends.empty()) {
      return fmt::format("{} has messages of device memory in flight", describe(end));
    }
  }
  return {};
}

ChannelEnd& Channels::end(chare::ChareBase& self, const Peer& peer, std::uint32_t id) {
  ChannelKey key{self.collection().id(), self.linear_index(), peer.collection->id(), peer.index, id};
  if (auto found = ends_.find(key); found != ends_.end()) return *found->second;
  if (key == key.reversed()) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        fmt::format("{} asks for a channel to itself; a channel joins two chares", self.where()));
  }
  if (numbered_ends_.size() == kMaxEndNumber) {
    throw base::Error(base::StatusCode::kOutOfRange,
                      fmt::format("PE {} has {} channel ends, the most that tags can tell apart",
                                  runtime_.pe(), kMaxEndNumber));
  }
  auto& slot = ends_[key];
  slot = std::make_unique<ChannelEnd>();
  slot->runtime = &runtime_;
  slot->key = key;
  slot->channels = this;
  numbered_ends_.push_back(slot.get());
  slot->number = static_cast<std::uint32_t>(numbered_ends_.size());
  slot->receive_tags = EndTags(range_.tag_type, slot->number);
  slot->next_send = first_counter_;
  slot->next_receive = first_counter_;
  announce(*slot);
  if (auto early = early_.find(key); early != early_.end()) {
    connect(*slot, early->second);
    early_.erase(early);
  }
  return *slot;
}

ChannelEnd* Channels::find(std::uint32_t number) const {
  return number == 0 || number > numbered_ends_.size() ? nullptr : numbered_ends_[number - 1];
}

ChannelEnd* Channels::find(std::uint32_t number, EndAddress peer) const {
  ChannelEnd* const end = find(number);
  if (end == nullptr || end->peer.number == 0) return end;
  return end->peer.pe == peer.pe && end->peer.number == peer.number ? end : nullptr;
}

void Channels::announce(const ChannelEnd& end) {
  chare::EntryHeader header{end.key.peer_collection, end.key.peer_index, 0, 0, {}};
  Announcement announcement{end.key.reversed(), {static_cast<std::uint32_t>(runtime_.pe()), end.number}};
  auto message = runtime::Message::pack(runtime_, handler(kAnnouncement), header, announcement);
  auto& chares = runtime_.model<chare::Chares>();
  chares.send_entry(chares.collection(end.key.peer_collection), end.key.peer_index, std::move(message));
}

void Channels::on_announcement(runtime::MessagePtr message) {
  chare::ChareBase* chare = runtime_.model<chare::Chares>().find_or_forward(message);
  if (chare == nullptr) return;
  chare::EntryHeader header;
  Announcement announcement;
  Pup p = message->unpacker();
  p | header | announcement;
  if (announcement.from.pe >= static_cast<std::uint32_t>(runtime_.num_pes()) ||
      announcement.from.number == 0 || announcement.from.number > kMaxEndNumber) {
    runtime_.fail(fmt::format("a channel end numbered {} on PE {} was announced to {}, which cannot be",
                              announcement.from.number, announcement.from.pe, chare->where()));
    return;
  }
  auto found = ends_.find(announcement.key);
  if (found == ends_.end()) {
    early_[announcement.key] = announcement.from;
  } else {
    connect(*found->second, announcement.from);
  }
}

void Channels::connect(ChannelEnd& end, EndAddress peer) {
  end.peer = peer;
  end.send_tags = EndTags(range_.tag_type, peer.number);
  while (!end.waiting_sends.empty()) {
    ChannelEnd::WaitingSend send = end.waiting_sends.front();
    end.waiting_sends.pop_front();
    start_send(end, send.buffer, send.operation);
  }
}

// --- The channel

Channel::Channel(chare::ChareBase& self, const Peer& peer, std::uint32_t id)
    : end_(&self.runtime().model<Channels>().end(self, peer, id)) {}

runtime::Operation Channel::send(const memory::ConstBuffer& buffer) {
  runtime::Runtime& runtime = *end_->runtime;
  bool copies = buffer.place.is_host() && buffer.size_bytes <= kCopyLimitBytes;
  auto* operation =
      runtime::OperationState::create(runtime, copies ? buffer.size_bytes : FailedSends::kExtraBytes);
  memory::ConstBuffer source = buffer;
  if (copies && buffer.size_bytes > 0) {
    std::memcpy(operation->extra(), buffer.data, buffer.size_bytes);
    source.data = operation->extra();
  }
  runtime.count_sent();
  if (end_->peer.number == 0) {
    end_->waiting_sends.push_back({source, operation});
  } else {
    start_send(*end_, source, operation);
  }
  return runtime::Operation(operation);
}

runtime::Operation Channel::recv(const memory::Buffer& buffer) {
  runtime::Runtime& runtime = *end_->runtime;
  auto* operation = runtime::OperationState::create(runtime, sizeof(Asked));
  const std::uint32_t counter = end_->next_receive++;
  new (operation->extra()) Asked{buffer.size_bytes, counter};
  operation->set_finisher(&check_received, end_);
  if (!buffer.place.is_host() || !end_->local.held_sends.empty()) [[unlikely]] {
    if (start_device_receive(*end_, counter, buffer, operation)) return runtime::Operation(operation);
  }
  machine::Tag tag = end_->receive_tags[counter];
  // A receive that is over at once found its message waiting; the machine has checked that it fits.
  operation->started(
      runtime.machine().tag_receive(tag, machine::kFullTagMask, buffer, operation->completion()),
      buffer.size_bytes);
  return runtime::Operation(operation);
}

memory::Buffer Channel::locate(const void* data, std::size_t size_bytes) const {
  memory::Place place = size_bytes == 0 ? memory::Place{} : end_->runtime->memory().place_of(data);
  return {const_cast<void*>(data), size_bytes, place, nullptr};
}

std::string Channel::description() const { return describe(*end_); }

}  // namespace weft::channel
