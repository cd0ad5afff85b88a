// The state of a message with attachments, besides its block. Private to the message layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/runtime/attachment.h"

#include "machine/machine.h"
#include "machine/peer_memory/mapping/source_name.h"
#include "runtime/message/joint_sending.h"

namespace weft::runtime {

struct Attached {
  enum class BufferState : std::uint8_t {
    kGiven,    // the sender's buffers
    kAwaited,  // announced: the buffers have sizes and kinds, and no memory yet
    kLanded,   // memory that the receiver owns
  };

  Attached() = default;
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    // If several messages report jointly, this PE's own is handled with the sender's buffers and sends
    // nothing. It therefore ends as closed only if the job has ended.
    if (sending != nullptr || (joint != nullptr && joint->scheduler().exiting())) {
      end_sending({base::StatusCode::kClosed, "the job ended before a message's buffers were sent"});
    }
  }

  // The kind of memory that the sender of the message sent this buffer from.
  memory::Kind first_kind(std::size_t which) const {
    if (!first_kinds.empty()) return first_kinds[which];
    return sender_kind.value_or(buffers[which].buffer().place.kind);
  }
  std::size_t size_bytes() const {
    std::size_t sum = 0;
    for (const Attachment& one : buffers) sum += one.buffer().size_bytes;
    return sum;
  }

  // Whether a completion waits for the end of the sending.
  bool is_reported() const { return sending != nullptr || joint != nullptr; }
  // Messages that share the buffers from now on report jointly.
  void report_jointly(Scheduler& scheduler) {
    if (sending == nullptr) return;
    joint = std::make_shared<JointSending>(scheduler, std::exchange(sending, nullptr), size_bytes());
  }
  void end_sending(base::Status status) {
    if (std::shared_ptr<JointSending> part = std::exchange(joint, nullptr)) return part->end_part(status);
    base::Completion* ended = std::exchange(sending, nullptr);
    const std::size_t sent_bytes = status.ok() ? sending_bytes : 0;
    if (ended != nullptr) ended->function(ended, std::move(status), sent_bytes);
  }

  std::vector<Attachment> buffers;
  BufferState state = BufferState::kGiven;
  // Whether this PE's poster has chosen where the buffers land.
  bool posted = false;
  // For a deferred message: called with the message when its last holder releases it, instead of freeing it.
  void (*on_release)(MessagePtr message) = nullptr;
  std::list<Message*>::iterator deferred_at;  // in the list of its Receiving
  // In state kAwaited: the buffers' tags, or the active message's payload, which is then the only buffer.
  std::vector<machine::Tag> tags;
  std::vector<bool> send_waits;  // for each tag: whether the send waits for its receive
  // Empty, or one for each tag: the sender's memory, where the announcement has named it.
  std::vector<std::optional<machine::SourceName>> source_names;
  machine::AmPayload payload;
  // In state kLanded: the kind of the sender's memory, if the bytes came eagerly and wait in host memory.
  std::optional<memory::Kind> sender_kind;
  // For a broadcast that has landed: the memory kinds at its first sender. This PE may lack them, and PEs
  // that it forwards the broadcast to may have them.
  std::vector<memory::Kind> first_kinds;
  // The bytes that the buffers count in flow control, until the message is handled.
  std::int64_t flow_bytes = 0;
  // For a send.
  base::Completion* sending = nullptr;
  std::shared_ptr<JointSending> joint;  // replaces `sending`
  std::size_t sending_bytes = 0;
  std::size_t unsent = 0;
  // The sources of buffers that are sent before they are copied; one for each buffer, or none.
  std::vector<machine::MovableSource> sources;
  std::size_t unsent_sources = 0;
  base::Status failure;
  std::shared_ptr<void> kept;  // by its poster
};

}  // namespace weft::runtime
