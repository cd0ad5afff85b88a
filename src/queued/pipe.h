// Messages of any size between two PEs, in both directions, that streams order: through a ring of places at the receiver, which Weft
// owns. The sender's end copies into the next place, the receiver's end out of it. A Link has no second copy, and granted places.
//
// Messages of a direction have an order, that in which they are queued. A receive names the label and the size of the message that
// it gets. If they are others, the launch fails. Larger messages go in pieces: one end a piece at each side.
//
// All counts are on the devices, and choose the places, so any part of a program can be captured in a graph.
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

#include "queued/message_queue.h"
#include "queued/stream_watch.h"

namespace weft::queued {

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

  // Makes the memory of this end, and grants it.
  runtime::Task<rma::GlobalAddress> grant();
  // What PE `pe` has granted. Throws kUnsupported if this PE's device does not reach it, and kCorrupt for one that no end makes.
  runtime::Task<> accept(int pe, rma::GlobalAddress grant);

  // Of a message; one without bytes has one.
  static constexpr std::size_t num_pieces(std::size_t size_bytes) {
    return size_bytes == 0 ? 1 : (size_bytes - 1) / kPieceBytes + 1;
  }
  // Add piece number `piece` of the message. REQUIRES: `label` is not 0. The pieces of a direction are queued in their order, those of one
  // message before those of the next, and at most kNumPlaces of a direction by one flush(). `queue` is of the pipe's device. The buffer
  // is memory of the device, stays until the stream has done the work, and may be empty.
  void send_piece(memory::ConstBuffer message, std::uint32_t label, std::size_t piece, MessageQueue& queue);
  void receive_piece(memory::Buffer message, std::uint32_t label, std::size_t piece, MessageQueue& queue);

  // Gives up the memory. REQUIRES: the streams are done. The task is over when the peer has done so too.
  runtime::Task<> close();
  // As close(), for a caller with many pipes: all begin before it waits for one. The futures are ready when the peer has done so too.
  std::vector<runtime::Future<>> begin_close();

 private:
  struct Ring;
  struct Held;
  // What both ends have in common, of that piece.
  static memory::MessageEnd end_of(std::size_t size_bytes, std::uint32_t label, std::size_t piece);

  rma::GlobalMemory& memory_;
  memory::Place device_;
  StreamWatch& watch_;
  std::function<std::string()> name_;
  std::shared_ptr<Held> held_;
};

}  // namespace weft::queued
