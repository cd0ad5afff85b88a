// The sends of this PE into receivers' memory that it cannot map: its devices copy them, chunk by chunk, into bounce
// buffers of the receivers (bounce_ring.h).
//
// Messages to one ring go in the order in which their streams are done. A send completes when its last chunk has been
// copied into the bounce buffer.
//
// Threads: the PE's. Invariant: a send completes exactly once, and not while a device reads its source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/mapping/exports.h"
#include "machine/peer_memory/mapping/imports.h"
#include "machine/peer_memory/mapping/mailbox.h"
#include "machine/peer_memory/mapping/peer_operation.h"
#include "machine/peer_memory/mapping/peer_stream.h"

namespace weft::machine {

class BounceSends {
 public:
  // All must outlive it.
  BounceSends(PeerContext& context, Exports& exports, Imports& imports);
  ~BounceSends();
  BounceSends(const BounceSends&) = delete;
  BounceSends& operator=(const BounceSends&) = delete;

  // Sends a message whose receive is posted with ring `number` of `file`; the caller has taken the posting. Pending if
  // the send has begun. Ok if the message must go with its tag, because the bounce buffer cannot be mapped. If it
  // fails, the caller must end its receive.
  base::Status start(const OutgoingStream& stream, StreamMessage message, const MailboxFile& file,
                     std::uint64_t number, const memory::ConstBuffer& source, base::Completion* user);

  // Whether poll() must be called: a send waits for the receiver.
  bool is_waiting() const { return num_queued_ + num_offered_ > 0; }
  bool poll();

  // Sends that wait for a stream end.
  void begin_close();
  // Gives receivers a short time to make room. Sends that still wait for it then end.
  void end_waits();
  bool has_copies() const { return !chunks_.empty(); }
  // Ends the sends that devices do not finish.
  void end_close();

 private:
  struct Send;
  struct Chunk;
  struct Ring;

  Ring& ring(int pe, std::uint64_t number, const MailboxFile& file);
  // Moves the sends of a ring forward. Returns whether anything happened.
  bool advance(Ring& ring);
  bool reclaim(Ring& ring);
  void offer_source(Ring& ring, Send& send);
  bool issue_chunk(Ring& ring, Send& send);
  void copied(Chunk& chunk, base::Status status);
  void fill(Ring& ring, std::uint64_t number);
  void stream_is_done(Send& send, base::Status status);
  void enqueue(Send& send);
  void dequeue(Send& send);
  void count(Send& send, TransferPath path);
  // Ends it if none of its copies is in flight and nothing is left to copy.
  void end_if_over(Send& send);
  void end(Send& send);
  void remove(Send& send);

  PeerContext& context_;
  Exports& exports_;
  Imports& imports_;
  std::map<std::pair<int, std::uint64_t>, std::unique_ptr<Ring>> rings_;
  std::vector<std::unique_ptr<Send>> sends_;
  std::vector<Chunk*> chunks_;
  int num_queued_ = 0;   // with bytes that wait for room in a ring
  int num_offered_ = 0;  // whose receivers copy the source
};

}  // namespace weft::machine
