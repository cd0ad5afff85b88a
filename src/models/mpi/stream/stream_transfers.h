// StreamTransfers: what a rank's stream exchanges with the streams of the other ranks of a communicator. It has a Pipe to
// each rank, itself included, for messages, and a DeviceGroup for collectives.
//
// A send or a receive is queued in the call. Messages that have been started, and not awaited, are queued as soon as something
// waits for them. Messages to a rank, and messages from it, keep their order.
//
// Order among both directions. All pieces that are queued together go side by side, in one launch if they are small. A piece that is sent
// may wait for the peer to free a place, so a round has at most as many pieces of a pipe and direction as it has places:
//
//     send 0, 1, 2, 3, receive 0, 1, 2, 3      then      send 4, 5, 6, 7, receive 4, 5, 6, 7      (pieces; a pipe has 4 places)
//
// This ends if the calls of all ranks match, call by call: the messages that a call has queued for a peer are received by one call of the
// peer, and these calls have an order in which no rank goes backwards. Number the pieces of a pipe in such a call from 0. Round k has the
// pieces 4k to 4k + 3, first those that are sent. Send 4k + i waits for receive 4(k - 1) + i of the peer, which is of its round before, or of
// an earlier call. A receive of round k waits for a send of the peer's round k. So no wait is in a circle.
// Calls that do not match this way work as long as what they send fits into the places: up to 1 MiB that is on its way to a rank.
//
// Collectives come behind all that has been started, receives too. So ranks start a message and its receive on the same
// side of a collective.
//
// Memory: 1.1 MiB of the device for each rank, and that of the group. All of it, and all agreement, is in connect().
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/memory/buffer.h"
#include "weft/queued/device_group.h"
#include "weft/runtime/task.h"

#include "models/mpi/communicators/communicator.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/stream/program_stream.h"
#include "models/mpi/stream/stream_request.h"
#include "queued/message_queue.h"
#include "queued/pipe.h"

namespace weft::mpi {

class StreamTransfers {
 public:
  struct Message {
    memory::Buffer
        buffer;  // of the stream's device, if it has bytes; it stays until the stream has done the work
    std::uint32_t label = 0;
  };

  // Gives the communicator its transfers on `stream`. All ranks of it call it. If one of them cannot, all get an error, and nothing is
  // kept: MPI_ERR_UNSUPPORTED_OPERATION if a device does not reach a peer's memory. `own`: an error that this rank has already.
  static runtime::Task<Error> connect(Ref<Communicator> communicator, Ref<ProgramStream> stream, Error own);

  ~StreamTransfers();
  StreamTransfers(const StreamTransfers&) = delete;
  StreamTransfers& operator=(const StreamTransfers&) = delete;

  ProgramStream& stream() const { return *stream_; }

  // Queue. They throw base::Error; if a message is queued in part then, so do all later calls.
  void send(int to, const Message& message);
  void receive(int from, const Message& message);
  // Are queued later.
  void start_send(int to, const Message& message);
  StartedReceive start_receive(int from, const Message& message);
  // queue_wanted() queues the receive, and those from the same rank before it.
  void want(StartedReceive receive);
  // Queues all sends, and the receives that are wanted.
  void queue_wanted();

  // Queues all that has been started, for a call that comes behind it.
  void queue_all();

  // Empty if the stream's device or the number of ranks allows none; why_no_group() says it.
  const queued::DeviceGroup& group() const { return group_; }
  const std::string& why_no_group() const { return why_no_group_; }

  // Whether the stream has done what is queued.
  bool is_idle() { return stream_->watch()->is_idle(); }
  // Queues what has been started, and gives the memory back when the stream has done it. All ranks call it. Throws the failure of the stream.
  runtime::Task<> close();

 private:
  // The messages of one direction that are not all queued.
  struct Lane {
    std::vector<Message> messages;
    std::size_t next = 0;   // of `messages`
    std::size_t piece = 0;  // of messages[next]
    std::uint64_t num_added = 0;
    std::uint64_t num_wanted = 0;  // that a call waits for

    bool is_empty() const { return next == messages.size(); }
    bool is_wanted() const { return num_added - (messages.size() - next) < num_wanted; }
    void add(const Message& message);
    // After piece `piece` has been queued.
    void go_on();
  };
  struct Peer;

  StreamTransfers(Ref<ProgramStream> stream, const Communicator& communicator);

  Peer& peer(int rank) const { return *peers_[static_cast<std::size_t>(rank)]; }
  runtime::Task<Error> meet(Ref<Communicator> communicator, Error error);
  runtime::Task<Error> make_group(Ref<Communicator> communicator);
  // As many pieces as there are places.
  static void add_sends(Peer& peer, queued::MessageQueue& queue);
  static bool add_receives(Peer& peer, bool only_wanted, queued::MessageQueue& queue);
  void expect_whole() const;
  runtime::Task<> give_up();

  Ref<ProgramStream> stream_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank
  std::vector<Peer*> outgoing_;               // with sends that are not queued
  std::vector<Peer*> incoming_;               // with receives that are not queued
  bool is_whole_ = true;                      // no message is queued in part
  queued::DeviceGroup group_;
  std::string why_no_group_;
};

}  // namespace weft::mpi
