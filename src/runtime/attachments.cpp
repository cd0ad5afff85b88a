#include "runtime/attachments.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "weft/base/error.h"
#include "weft/runtime/runtime.h"

#include "machine/machine.h"
#include "machine/tag.h"

namespace weft::runtime {

static_assert(Message::kMaxAttachments * sizeof(Attachments::Announcement) <= machine::kMaxAmHeaderBytes);

// One attachment on its way out; shares the message, whose last share gives the buffer back.
struct Attachments::Sending final : base::Completion {
  Sending(Runtime& runtime_in, MessagePtr message_in)
      : base::Completion(&Sending::ended), runtime(runtime_in), message(std::move(message_in)) {}
  static void ended(base::Completion* completion, base::Status status, std::size_t) {
    std::unique_ptr<Sending> self(static_cast<Sending*>(completion));
    --self->runtime.outstanding_sends_;
    self->runtime.check_sent(-1, status);
  }
  Runtime& runtime;
  MessagePtr message;
};

// A message that waits for its attachments.
struct Attachments::Landing {
  struct Piece final : base::Completion {
    Piece() : base::Completion(&Piece::ended) {}
    static void ended(base::Completion* completion, base::Status status, std::size_t size_bytes) {
      auto* piece = static_cast<Piece*>(completion);
      piece->landing->ended(*piece, status, size_bytes);
    }
    Landing* landing = nullptr;
    Attachment* attachment = nullptr;
  };

  Landing(Runtime& runtime_in, MessagePtr message_in)
      : runtime(runtime_in), message(std::move(message_in)), pieces(message->attachments().size()) {}

  void ended(Piece& piece, const base::Status& status, std::size_t size_bytes) {
    const memory::Buffer& buffer = piece.attachment->buffer();
    if (status.failed() || size_bytes != buffer.size_bytes) {
      if (!failed && !runtime.exiting()) {
        runtime.fail(
            fmt::format("a buffer of {} bytes that came with a message from PE {} could not be received: {}",
                        buffer.size_bytes, message->envelope().source_pe,
                        status.failed() ? status.to_string() : fmt::format("{} bytes came", size_bytes)));
      }
      failed = true;
    }
    piece.attachment->arrived();
    if (--awaited == 0) all_ended();
  }
  void all_ended() {
    std::unique_ptr<Landing> self(this);
    if (!failed) runtime.receive(std::move(message));
  }

  Runtime& runtime;
  MessagePtr message;
  std::vector<Piece> pieces;
  std::size_t awaited = 1;  // and the loop that starts them
  bool failed = false;
};

Attachment Attachments::make_room(std::size_t size_bytes) {
  auto release = [](void* owner, const memory::Buffer& buffer) {
    static_cast<Runtime*>(owner)->pool().deallocate(buffer.data, buffer.size_bytes);
  };
  void* block = runtime_.pool().allocate(size_bytes);
  return Attachment(memory::Buffer{block, size_bytes, {}, nullptr}, release, &runtime_);
}

void Attachments::keep_own_copies(Message& message) {
  for (Attachment& attachment : message.attachments()) {
    if (attachment.is_landed()) continue;
    Attachment copy = make_room(attachment.buffer().size_bytes);
    std::memcpy(copy.buffer().data, attachment.buffer().data, attachment.buffer().size_bytes);
    copy.await(0);
    attachment = std::move(copy);
  }
}

std::vector<Attachments::Announcement> Attachments::announce(const Message& message) {
  std::vector<Announcement> announced;
  for (const Attachment& attachment : message.attachments()) {
    announced.push_back(
        {static_cast<std::uint32_t>(runtime_.pe()), next_counter_, attachment.buffer().size_bytes});
    next_counter_ = (next_counter_ + 1) & machine::kDeviceCounterMask;
  }
  return announced;
}

void Attachments::send(int pe, Message& message, const std::vector<Announcement>& announced) {
  for (std::size_t i = 0; i < announced.size(); ++i) {
    auto* sending = new Sending(runtime_, message.share());  // its completion's, if the send is pending
    ++runtime_.outstanding_sends_;
    base::Status status =
        runtime_.machine().tag_send(pe, machine::device_tag(announced[i].source_pe, announced[i].counter),
                                    message.attachments()[i].buffer(), sending);
    if (status.is_pending()) continue;
    delete sending;
    --runtime_.outstanding_sends_;
    runtime_.check_sent(pe, status);
  }
}

base::Status Attachments::expect(Message& message, std::span<const std::byte> header) {
  if (header.size() % sizeof(Announcement) != 0 ||
      header.size() / sizeof(Announcement) > Message::kMaxAttachments) {
    return {base::StatusCode::kCorrupt,
            fmt::format("a message header of {} bytes makes no sense", header.size())};
  }
  for (std::size_t at = 0; at < header.size(); at += sizeof(Announcement)) {
    Announcement announced;
    std::memcpy(&announced, header.data() + at, sizeof announced);
    if (announced.source_pe >= static_cast<std::uint32_t>(runtime_.num_pes()) ||
        announced.counter > machine::kDeviceCounterMask) {
      return {base::StatusCode::kCorrupt,
              fmt::format("a message header announces a buffer numbered {} from PE {}", announced.counter,
                          announced.source_pe)};
    }
    try {
      Attachment room = make_room(announced.size_bytes);
      room.await(machine::device_tag(announced.source_pe, announced.counter));
      message.attach(std::move(room));
    } catch (const std::bad_alloc&) {
      return {base::StatusCode::kOutOfMemory,
              fmt::format("there is no memory for a buffer of {} bytes that comes with a message from PE {}",
                          announced.size_bytes, announced.source_pe)};
    }
  }
  return {};
}

bool Attachments::has_awaited(const Message& message) {
  for (const Attachment& attachment : message.attachments()) {
    if (attachment.awaited_tag() != 0) return true;
  }
  return false;
}

void Attachments::land(MessagePtr message) {
  auto* landing = new Landing(runtime_, std::move(message));
  std::span<Attachment> attachments = landing->message->attachments();
  for (std::size_t i = 0; i < attachments.size(); ++i) {
    Landing::Piece& piece = landing->pieces[i];
    piece.landing = landing;
    piece.attachment = &attachments[i];
    ++landing->awaited;
    const memory::Buffer& buffer = attachments[i].buffer();
    base::Status status =
        runtime_.machine().tag_receive(attachments[i].awaited_tag(), machine::kFullTagMask, buffer, &piece);
    if (!status.is_pending()) landing->ended(piece, status, buffer.size_bytes);
  }
  if (--landing->awaited == 0) landing->all_ended();
}

}  // namespace weft::runtime
