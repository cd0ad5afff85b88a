// What a message with attachments has besides its block. Private to the message layer.
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
#include "runtime/message/joint_sending.h"

namespace weft::runtime {

struct Attached {
  enum class State : std::uint8_t {
    kGiven,    // the sender's buffers
    kAwaited,  // announced: the buffers say sizes and kinds, and have no memory
    kLanded,   // memory that the receiver owns
  };

  Attached() = default;
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    // A message of several that report jointly may be handled with the sender's buffers, and is then over.
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

  // Whether the sender asked to be told how the sending ends.
  bool is_reported() const { return sending != nullptr || joint != nullptr; }
  // From now on messages that share the buffers report jointly.
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
  State state = State::kGiven;
  // Whether this PE's poster has chosen for the message.
  bool posted = false;
  // Of a deferred message: called with the message, in place of freeing it, when its last holder releases it.
  void (*on_release)(MessagePtr message) = nullptr;
  std::list<Message*>::iterator deferred_at;  // in the messenger's list
  // Of kAwaited: the buffers' tags, or the active message's payload that is the only buffer.
  std::vector<machine::Tag> tags;
  machine::AmPayload payload;
  // Of kLanded: the kind that the sender sent from, where the bytes came eagerly and wait in host memory.
  std::optional<memory::Kind> sender_kind;
  // Of a broadcast that has landed: the kinds of memory that it was sent from first, for PEs that have what
  // this one may lack.
  std::vector<memory::Kind> first_kinds;
  // Of a send.
  base::Completion* sending = nullptr;
  std::shared_ptr<JointSending> joint;  // in its place
  std::size_t sending_bytes = 0;
  std::size_t unsent = 0;
  base::Status failure;
  std::shared_ptr<void> kept;  // by its poster
};

}  // namespace weft::runtime
