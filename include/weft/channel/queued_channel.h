// weft::QueuedChannel: messages of device memory between two chares that are queued on streams. A loop of kernels, sends and
// receives needs the CPU for nothing but queueing, and can be captured in a CUDA graph and launched again and again.
//
//   QueuedChannel right(*this, proxy()[index() + 1], device, {halo_0, halo_1});   // messages of the peer land there, in turn
//   co_await right.connect();                                              // once: both ends agree on the places
//   for (int step = 0; step < num_steps; ++step) {
//     right.send(edge, stream);     // behind the kernels that are queued on the stream
//     const memory::Buffer halo = right.recv(stream);   // or both at once, in half the time of the CPU: exchange(edge, stream)
//     launch(kernel, halo, stream);   // it finds the message in `halo`
//   }
//   co_await right.over();
//
// Both chares name each other and the same id, as for a Channel, and each may receive, send, or both. A direction of a channel has one
// stream at a time: if it goes on on another one, that waits for what is queued on the first. All messages of a direction have
// the size of the receiver's landings. The n-th message lands in landing n % landings.size(). It is valid for work that is queued
// before the next recv(), with which it becomes free: so a message may arrive while kernels still read the one before.
//
// A stream whose message does not come waits, and the CPU does not. Queue what the peer needs first: two streams that each wait for
// a message which is queued behind the wait never end. If a job ends while a stream waits, the wait ends too.
//
// Graphs: a capture of `stream` takes up sends and receives. Each launch does the next ones. A graph has a multiple of landings.size()
// messages of a direction, so that its kernels find each message where it lands, and so has all that is queued between its launches: a
// launch begins with the landing with which the capture began. The program awaits the streams on which it launches graphs.
//
// A chare with a channel that is connected does not move and is not saved: close() it before, at both ends. Quiescence waits
// for what is queued, launches of graphs excepted.
//
// Devices: both PEs are on one host, each uses its own device (weft::device_of), and their devices reach each other's memory; else
// connect() throws kUnsupported, at both ends. PEs that share a device take turns on it: each wait may cost a turn.
//
// While a stream waits for something that this PE has still to queue, calls that wait for the device do not return: those that allocate
// or free memory, connect() and close() of other channels included, and the first launch of a kernel.
//
// Threads: the PE's. No call waits, and send() and recv() allocate no device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/channel/channel.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/future.h"
#include "weft/runtime/task.h"

namespace weft::channel {

class QueuedChannel {
 public:
  // An empty one: it may only be assigned to or destroyed.
  QueuedChannel() = default;
  // `landings`: memory of `device`, of one size; the program keeps it until close() is over, or the job's end. Without landings this
  // end only sends; else it has 2 to 8. Throws Error for other memory.
  QueuedChannel(chare::ChareBase& self, const Peer& peer, memory::Place device,
                std::vector<memory::Buffer> landings, std::uint32_t id = 0);

  // Agrees with the peer, which calls it too, from now on. Ready when both have.
  runtime::Future<> connect();

  // Queues the message behind the work on `stream`, which is one of the device (null: the kind's own). The message stays
  // unchanged until the stream has done it. Throws Error: not connected, another size than the peer's landings, another place.
  void send(const memory::ConstBuffer& message, memory::StreamHandle stream);
  // Work that is queued on `stream` behind this call has the next message, until the next recv(). Returns its landing.
  memory::Buffer recv(memory::StreamHandle stream);

  // As send() and then recv(), in one launch.
  memory::Buffer exchange(const memory::ConstBuffer& message, memory::StreamHandle stream);
  struct Side {
    QueuedChannel* channel = nullptr;
    memory::ConstBuffer message;
  };
  // As send() of all sides and then recv() of all: in one launch for up to 8 channels of one device whose messages have 64 KiB together.
  // Larger messages are copied by the copy engine, between two launches. Returns the landings. Throws Error as they do, and if a channel is there twice.
  static std::vector<memory::Buffer> exchange_all(std::span<const Side> sides, memory::StreamHandle stream);

  // Ready when all that was queued is over. Throws Error if a device has failed.
  runtime::Future<> over();
  // Waits for that, and for the peer's close(). Throws Error while it is being connected. When it is ready, the landings are the program's, and connect() may follow.
  runtime::Future<> close();

 private:
  struct State;
  static runtime::Task<> run_connect(std::shared_ptr<State> state);
  static runtime::Task<> run_close(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace weft::channel
