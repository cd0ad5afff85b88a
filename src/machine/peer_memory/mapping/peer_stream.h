// An ordered stream of messages from one PE to another, as its two ends see it.
//
// Each message has a number, counted by each end, which may wrap, and a tag. The tags of all messages are
// different, so that a message that is not copied past the machine travels as a tagged message. A model keeps
// the streams, fills in the first three fields, and counts `next` up for each message, on any path.
#pragma once

#include <cstdint>

#include "machine/machine.h"

namespace weft::machine {

struct Mailbox;
struct MailboxOwner;

// One message of a stream.
struct StreamMessage {
  std::uint32_t number = 0;
  Tag tag = 0;
};

// The receiver's end.
struct IncomingStream {
  // The name of the stream: unlike that of every other stream to this PE. Both ends give the same.
  Tag name = 0;
  // The sending PE. -1: not known yet, and receives are posted with their tags only.
  int peer = -1;
  std::uint32_t next = 0;  // of the next receive
  // Whether it may get the mailbox of a stream that has ended. Then only the sender may begin a shared copy: it ends what it
  // still knows of the former stream.
  bool takes_used_mailbox = false;

  // Used by peer memory only.
  Mailbox* mailbox = nullptr;
  bool has_asked_for_mailbox = false;
  std::uint32_t receives = 0;    // in flight, that peer memory has started
  std::uint32_t held_sends = 0;  // sends that wait for their receives to be started
};

// Where the receiver of a stream on another PE posts; kept by peer memory.
struct Outbox {
  Mailbox* mailbox = nullptr;
  const MailboxOwner* owner = nullptr;
};

// The sender's end.
struct OutgoingStream {
  Tag name = 0;
  int peer = -1;           // the receiving PE
  std::uint32_t next = 0;  // of the next send
  // The receiver's end when it is on this PE and knows its peer; it must outlive this one.
  IncomingStream* on_this_pe = nullptr;

  // Used by peer memory only.
  Outbox* outbox = nullptr;
};

}  // namespace weft::machine
