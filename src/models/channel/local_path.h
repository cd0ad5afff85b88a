// Channel messages of device memory between two chares of one PE: the device copies from buffer to buffer,
// past the machine, whose own way within a process may lead through host memory. (With UCX 1.22 that took
// 38 ms of each iteration of Jacobi3D, 1536^3 points in four blocks on two H200.)
//
// The sender decides. The PE's one thread runs both ends, so it sees what the receiving end has done:
//
//     posted here              the receive is taken, and its tagged half cancelled
//     posted with its tag only  (host memory, or before the peer was known) the message goes with its tag
//     not posted yet           the send is held at the receiving end, and its receive finds it there
//
// What was queued on a buffer's stream when its operation was started comes first, and nothing else: both
// sides wait for that before the copy is started, which names no stream.
//
// Threads: the PE's. Invariants: a message goes one way only; an operation completes exactly once, and not
// before the copy that uses its buffer is over.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "weft/memory/buffer.h"
#include "weft/runtime/runtime.h"

namespace weft::channel {

class Channels;
struct ChannelEnd;

class LocalPath {
 public:
  struct Receive;
  struct HeldSend {
    memory::ConstBuffer source;
    runtime::OperationState* operation = nullptr;
  };
  // A channel end's part, as it receives. By counter.
  struct End {
    std::map<std::uint32_t, HeldSend> held_sends;
    std::map<std::uint32_t, Receive*> receives;
  };

  // `channels` must outlive it.
  LocalPath(runtime::Runtime& runtime, Channels& channels) : runtime_(runtime), channels_(channels) {}

  // For measuring the machine's way alone.
  void turn_off() { is_on_ = false; }

  // Starts message `counter`, of device memory, unless it must go with its tag: then false, and nothing was
  // done. REQUIRES: the peer is known.
  bool send(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& source,
            runtime::OperationState* operation);
  // Starts the receive of message `counter` if it is of device memory, or its send is held here; else false,
  // and its tag is to be posted.
  bool receive(ChannelEnd& end, std::uint32_t counter, const memory::Buffer& buffer,
               runtime::OperationState* operation);
  // The machine is closed: nobody will receive what is held at `end`.
  static void close(ChannelEnd& end);

 private:
  struct LateSend;
  struct Copy;

  // The peer's end, if it is on this PE and knows this one; else null.
  ChannelEnd* local_peer(const ChannelEnd& end) const;
  bool deliver(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& source,
               runtime::OperationState* operation);
  bool wait_for_stream(memory::Place place, memory::StreamHandle stream, base::Completion* completion);
  // Pending, or why it could not be started: nothing was done then.
  base::Status copy(const memory::Buffer& destination, runtime::OperationState* receiving,
                    const HeldSend& send);

  runtime::Runtime& runtime_;
  Channels& channels_;
  bool is_on_ = true;
};

}  // namespace weft::channel
