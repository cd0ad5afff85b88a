// Messages of any size between two PEs, in both directions, that streams order: through a ring of places at the receiver, which Weft
// owns. The sender's step copies into the next place, the receiver's step out of it. A Link has no second copy, and granted places.
//
// Messages of a direction have an order, that in which the streams do them. A receive names the label and the size of the message that
// it gets. If they are others, the step fails and copies nothing. Larger messages go in pieces: one step a piece at each end.
//
// All counts are on the devices, so any part of a program can be captured in a graph.
// Threads: the PE's. Claims: what the peer grants is checked by accept().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/memory/buffer.h"
#include "weft/rma/global_memory.h"
#include "weft/runtime/future.h"
#include "weft/runtime/task.h"

#include "memory/kinds/device_step.h"
#include "queued/step_queue.h"
#include "queued/stream_watch.h"

namespace weft::queued {

struct PipeGrant {
  rma::GlobalAddress words;
  rma::GlobalAddress places;
};
static_assert(std::is_trivially_copyable_v<PipeGrant>);

class Pipe {
 public:
  static constexpr std::size_t kPieceBytes = 256 << 10;
  static constexpr std::uint32_t kNumPlaces = 4;

  // `watch` outlives it, and notes the streams.
  Pipe(rma::GlobalMemory& memory, memory::Place device, StreamWatch& watch,
       std::function<std::string()> name);
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // Makes the memory of this end.
  runtime::Task<PipeGrant> grant();
  // The grant of PE `pe`. Throws kUnsupported if this PE's device does not reach it, and kCorrupt for one that no end makes.
  runtime::Task<> accept(int pe, PipeGrant grant);

  // Queue. REQUIRES: `label` is not 0. The buffers are memory of the device, stay until the stream has done the work, and may be empty.
  // Throw Error.
  void send(memory::ConstBuffer message, std::uint32_t label, memory::StreamHandle stream);
  void receive(memory::Buffer message, std::uint32_t label, memory::StreamHandle stream);

  // Of a message; one without bytes has one.
  static constexpr std::size_t num_pieces(std::size_t size_bytes) {
    return size_bytes == 0 ? 1 : (size_bytes - 1) / kPieceBytes + 1;
  }
  // As send() and receive(), for callers that queue other steps between the pieces: piece number `piece` of the message. REQUIRES: the
  // pieces of a direction are queued in their order, and those of one message before those of the next. `queue` is of the pipe's
  // device and watch.
  void send_piece(memory::ConstBuffer message, std::uint32_t label, std::size_t piece, StepQueue& queue);
  void receive_piece(memory::Buffer message, std::uint32_t label, std::size_t piece, StepQueue& queue);

  // Gives up the memory. REQUIRES: the streams are done. The task is over when the peer has done so too.
  runtime::Task<> close();
  // As close(), for a caller with many pipes: all begin before it waits for one. The futures are ready when the peer has done so too.
  std::vector<runtime::Future<>> begin_close();

 private:
  struct Words;
  struct Held;
  // What both ends have in common, of that piece.
  memory::DeviceStep step_of(std::size_t size_bytes, std::uint32_t label, std::size_t piece) const;
  StepQueue queue_of(memory::StreamHandle stream);

  rma::GlobalMemory& memory_;
  memory::Place device_;
  StreamWatch& watch_;
  std::function<std::string()> name_;
  std::shared_ptr<Held> held_;
};

}  // namespace weft::queued
