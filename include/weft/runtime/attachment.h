// A buffer that travels out of band, not in the block of its message. It is sent in place, without a copy, and lands in memory of its own
// before the message is handled. Memory of any kind. Sending and landing wait for the work queued on the
// buffer's stream.
//
// Threads: one PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "weft/memory/buffer.h"

namespace weft::runtime {

class Message;
struct MessageRelease;
using MessagePtr = std::unique_ptr<Message, MessageRelease>;

// Move-only. Destroying the last share releases the buffer: at the sender the program may use it again, at
// the receiver the landed memory is reused.
class Attachment {
 public:
  using Release = void (*)(void* owner, const memory::Buffer& buffer);

  Attachment() = default;
  // `release` is called once, with `owner`, when the last share of the buffer is destroyed.
  Attachment(const memory::Buffer& buffer, Release release, void* owner)
      : buffer_(buffer), release_(release), owner_(owner) {}
  // Memory that needs no release.
  explicit Attachment(const memory::Buffer& buffer)
      : Attachment(buffer, [](void*, const memory::Buffer&) {}, nullptr) {}
  Attachment(Attachment&& other) noexcept { swap(other); }
  Attachment& operator=(Attachment&& other) noexcept {
    Attachment moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Attachment() {
    if (release_ != nullptr) release_(owner_, buffer_);
  }

  const memory::Buffer& buffer() const { return buffer_; }
  // False for an empty attachment, and after a move.
  explicit operator bool() const { return release_ != nullptr; }

  // Work queued on `stream` uses the memory, which is sent or reused only after that work.
  void use_on(memory::StreamHandle stream) { buffer_.stream = stream; }
  // Sets the place of the memory.
  void relocate(memory::Place place) { buffer_.place = place; }
  // The sender no longer uses the memory: it is a copy for this message, or was handed over. A message to the
  // own PE passes it on without a copy, unless it is shared.
  void give_away() { given_away_ = true; }
  bool is_given_away() const { return given_away_; }
  // The buffer gets a copy of the bytes at `source`: by copy_now(), or never if the machine sends them from there.
  // Unless the bytes have been sent, the message layer calls copy_now() before the call that sends the message
  // returns. REQUIRES: host memory; the bytes stay as they are until then.
  void copy_later(const void* source) { source_ = source; }
  // The source of a copy that has not been made; else null.
  const void* uncopied() const { return source_; }
  void copy_now();
  // Keeps only the leading `size_bytes`. REQUIRES: not more than the buffer has.
  void shorten(std::size_t size_bytes) { buffer_.size_bytes = size_bytes; }

  // Returns another holder of the same memory. The memory is released once, with the last holder. While there
  // are several holders, they only read the memory, and at most one of them may name another stream.
  Attachment share();
  // Whether the memory has other holders now.
  bool is_shared() const;

 private:
  void swap(Attachment& other) noexcept {
    std::swap(buffer_, other.buffer_);
    std::swap(release_, other.release_);
    std::swap(owner_, other.owner_);
    std::swap(given_away_, other.given_away_);
    std::swap(source_, other.source_);
  }

  memory::Buffer buffer_;
  Release release_ = nullptr;
  void* owner_ = nullptr;
  bool given_away_ = false;
  const void* source_ = nullptr;
};

// One announced buffer of a message, whose bytes have not landed yet. A poster chooses where it lands.
struct ReceiveBuffer {
  // The size of the sender's buffer, and its memory kind on this PE's own device.
  std::size_t size_bytes = 0;
  memory::Place place;
  // Where the bytes land. If it is empty, the runtime allocates memory at `place`, or host memory if this PE
  // lacks that kind. A larger buffer is filled at its beginning. A smaller one gets the leading part; of more than 1 MiB of
  // the sender's host memory it gets nothing, and the message has an empty attachment. The bytes land after the work
  // queued on its stream.
  Attachment into;
};

// A poster's decision about a message.
enum class Posting : std::uint8_t {
  kHandle,  // the buffers land, then the message is handled
  kDrop,    // the buffers land in the runtime's memory, then the message is released
  kDefer,   // the poster has taken the message; its buffers stay where they are, see Messenger::place()
};

// Called from the scheduler for a message with attachments, before they land. It is called once on the PE
// that handles the message, also if the attachments have landed on another PE before, and once after each
// Messenger::post_again(). It must not block. It may take the message away only to defer it.
using MessagePoster = Posting (*)(void* context, MessagePtr& message,
                                  std::span<ReceiveBuffer> receive_buffers);
// Called for a message that its poster accepted and that is dropped, because a buffer did not arrive.
using MessageDropped = void (*)(void* context, Message& message);

}  // namespace weft::runtime
