// A buffer that travels with a message but not inside it: it is sent in place, from where it lies, and lands
// in memory of its own before the message is handled. Memory of any kind; work queued on the buffer's stream
// comes first, when it is sent and when something lands in it.
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

// Move-only. Destroying the last share releases the buffer: at the sender the program may use it again, at the
// receiver the landed memory is reused.
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
  // False once it has been moved elsewhere.
  explicit operator bool() const { return release_ != nullptr; }

  // Work queued on `stream` uses the memory: sending it on, or giving it back, comes after that work.
  void use_on(memory::StreamHandle stream) { buffer_.stream = stream; }
  // Where the memory is, once that is known.
  void relocate(memory::Place place) { buffer_.place = place; }
  // The sender does not need the memory any more: it is a copy for this message, or was handed over. A message to
  // the own PE hands it on in place of copying it, until it is shared.
  void give_away() { given_away_ = true; }
  bool is_given_away() const { return given_away_; }
  // Only the leading part counts from now on. REQUIRES: no more than there is.
  void shorten(std::size_t size_bytes) { buffer_.size_bytes = size_bytes; }

  // Another holder of the same memory, which is given back once, when the last of them lets go. They only
  // read it, and at most one of them names another stream, until one is left.
  Attachment share();
  // Whether there are other holders now.
  bool is_shared() const;

 private:
  void swap(Attachment& other) noexcept {
    std::swap(buffer_, other.buffer_);
    std::swap(release_, other.release_);
    std::swap(owner_, other.owner_);
    std::swap(given_away_, other.given_away_);
  }

  memory::Buffer buffer_;
  Release release_ = nullptr;
  void* owner_ = nullptr;
  bool given_away_ = false;
};

// One buffer of a message that has arrived and whose buffers have not, for a poster to say where it lands.
struct Landing {
  // What the sender sends, and the kind of memory it comes from; the device is one of this PE's.
  std::size_t size_bytes = 0;
  memory::Place place;
  // Left empty, the runtime allocates, where `place` says or in host memory when this PE lacks that kind. A
  // buffer that is larger than what comes is filled at its beginning; a smaller one takes the leading part.
  // Work queued on its stream comes first.
  Attachment into;
};

// What a poster makes of a message.
enum class Posting : std::uint8_t {
  kHandle,  // the buffers land, then the message is handled
  kDrop,    // the buffers land in the runtime's memory, then the message is released
  kDefer,   // the poster has taken the message: its buffers stay where they are, see Messenger::place()
};

// Called from the scheduler for a message with attachments, before they land, once on the PE that handles it
// (also for a message that waited or came on from another PE with what had landed there), and once more after
// Messenger::post_again(). It reads the message and starts nothing that blocks. It may take the message away
// only to defer it.
using MessagePoster = Posting (*)(void* context, MessagePtr& message, std::span<Landing> landings);
// Called for a message that its poster wanted and that will not be handled, because a buffer did not come.
using MessageDropped = void (*)(void* context, Message& message);

}  // namespace weft::runtime
