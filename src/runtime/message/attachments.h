// How attachments travel between PEs, and how they land. Two wire paths, one interface:
//
//   tagged   an active message carries the message and, in its header, announces the buffers; each follows as
//            one tagged message with the device tag, in place.
//   active   one active message carries the message in its header and the only buffer as its payload.
//
// On arrival the handler's poster chooses, in the scheduler, where each buffer lands; the message is handled
// when all have landed. A message to the own PE takes the same way with copies in the place of receives, and
// so does one that has landed and meets a poster later. A message that is sent on before it could be handled
// takes what has landed with it.
//
// A broadcast lands without a poster, since it is for nobody in particular: each PE sends it on from where it
// has landed, and handles it with the same memory; the root does both with the sender's.
//
// A buffer that cannot be sent is revoked: an empty tagged message comes in its place, the receiver drops the
// message, and the sender's operation says why (without one, the job ends). Bytes from a peer are checked
// here: kinds, sizes, PEs, counters. Threads: one PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/status.h"
#include "weft/runtime/message.h"
#include "weft/runtime/runtime.h"

#include "machine/machine.h"
#include "runtime/message/landing_pool.h"

namespace weft::runtime {

class Attachments {
 public:
  // One buffer in the header of an active message.
  struct Announcement {
    std::uint32_t source_pe = 0;  // of its tag; of the PE that sent it on, if one did
    std::uint32_t counter = 0;
    std::uint64_t size_bytes = 0;
    memory::Kind kind = memory::Kind::kHost;
    std::uint8_t reserved[7] = {};
  };

  Attachments(Runtime& runtime, MessagingPath path)
      : runtime_(runtime), path_(path), landing_pool_(runtime) {}

  struct Poster {
    MessagePoster choose = nullptr;
    MessageDropped dropped = nullptr;
  };
  void set_poster(HandlerId handler, Poster poster) { posters_.at(handler) = poster; }

  // Throws when a poster chooses for this message's handler: a broadcast lands without one.
  void expect_no_poster(Message& message) const;
  // Sends a message that has attachments to another PE.
  void send(int pe, MessagePtr message);
  // To this one.
  void send_to_self(MessagePtr message);

  // Reads what the header of an active message announces into `message`.
  base::Status expect(Message& message, std::span<const std::byte> header);
  // The message in the header of an active message whose payload is its only buffer; the failure when it
  // makes no sense. Takes the payload from `arrival`.
  base::Result<MessagePtr> unwrap(machine::AmArrival& arrival);
  // Lands the buffers of a message whose bytes are here, then has it handled. Called inside progress().
  void arrived(MessagePtr message);

  // For tests.
  void set_next_counter(std::uint32_t counter) { next_counter_ = counter; }
  LandingPool& landing_pool() { return landing_pool_; }

 private:
  struct Sending;
  struct Revocation;
  class Arrival;

  bool goes_active(const Message& message) const;
  void send_tagged(int pe, MessagePtr message);
  void send_active(int pe, MessagePtr message);
  std::vector<Announcement> announce(Message& message);
  void sent(Sending& sending, base::Status status);
  void revoke(int pe, machine::Tag tag);

  memory::Place landing_place(memory::Kind kind) const;
  base::Status await(Message& message, const Announcement& announced);
  void enqueue(MessagePtr message);
  bool has_poster(Message& message) const { return posters_[message.envelope().handler].choose != nullptr; }
  void post(MessagePtr message, bool dropped);
  void drop(Message& message, bool was_posted);
  void count_lost(Message& message, int pe);

  Runtime& runtime_;
  MessagingPath path_;
  LandingPool landing_pool_;
  std::array<Poster, kNumHandlers> posters_{};
  std::uint32_t next_counter_ = 0;
};

}  // namespace weft::runtime
