// Messages of device memory within one PE: the device copies from buffer to buffer, because a machine's own
// way within a process may lead through host memory. (With UCX 1.22 that took 38 ms of each iteration of
// Jacobi3D, 1536^3 points in four blocks on two H200.)
//
// The sender decides, since the PE's one thread runs both ends and sees what the receiving end has done:
//
//     its receive was started here          the message is copied
//     its receive has its tag only (host memory, or before the peer was known)   the message goes with its tag
//     its receive was not started           the send is held, and its receive finds it
//
// A copy starts when the work that was queued on both buffers' streams at their start calls is done. The
// tagged half of a receive stays posted until the copy has ended, so that a send that fails ends its receive
// as on every path.
//
// Threads: the PE's. Invariants: a message goes one way only. An operation completes exactly once, and not
// before the copy that uses its buffer is over.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/mapping/peer_operation.h"
#include "machine/peer_memory/mapping/peer_stream.h"

namespace weft::machine {

class OwnPeCopies {
 public:
  explicit OwnPeCopies(PeerContext& context);
  ~OwnPeCopies();
  OwnPeCopies(const OwnPeCopies&) = delete;
  OwnPeCopies& operator=(const OwnPeCopies&) = delete;

  // Starts a send of device memory to `stream`, of this PE: the contract of Machine::tag_send. If it fails,
  // the caller must end its receive, unless it fails with kPeerFailed: then the receive has failed.
  base::Status send(IncomingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                    base::Completion* user);
  // Starts a receive of device memory, or of host memory whose send is held: the contract of
  // Machine::tag_receive with a full mask. Nothing is returned and nothing was done for other host memory.
  std::optional<base::Status> receive(IncomingStream& stream, StreamMessage message,
                                      const memory::Buffer& buffer, base::Completion* user);

  // If the send of that message is held, it goes with its tag.
  void send_by_tag(StreamMessage message);

  bool has_copies() const { return num_copies_ > 0; }
  // Ends the sends that are held or wait for a stream.
  void begin_close();
  // After the machine has ended the tagged halves. Ends what devices do not finish.
  void end_close();

 private:
  struct HeldSend;
  struct Receive;
  struct LateSend;

  // Pending when the send was taken, ok when the message must go with its tag.
  base::Status deliver(IncomingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                       base::Completion* user);
  bool start_copy(Receive& receive, const memory::ConstBuffer& source, base::Completion* sender);
  void remove_if_over(Receive& receive);

  PeerContext& context_;
  std::unordered_map<Tag, std::unique_ptr<HeldSend>> held_sends_;
  std::unordered_map<Tag, Receive*> waiting_receives_;  // for their sends
  std::vector<Receive*> receives_;
  std::vector<LateSend*> late_sends_;
  int num_copies_ = 0;
};

}  // namespace weft::machine
