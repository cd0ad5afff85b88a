#include "models/mpi/stream/stream_transfers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "weft/base/error.h"
#include "weft/rma/global_memory.h"

#include "base/format.h"
#include "models/mpi/collective/data_movement.h"
#include "models/mpi/p2p/shared_state.h"
#include "models/mpi/stream/stream_group.h"

namespace weft::mpi {

using queued::Pipe;

struct StreamTransfers::Peer {
  Peer(ProgramStream& stream, int pe_in, std::string name)
      : pe(pe_in),
        pipe(stream.runtime().offered<rma::GlobalMemory>(), stream.device(), *stream.watch(),
             [name = std::move(name)] { return name; }) {}

  int pe;
  Pipe pipe;
  Lane out;
  Lane in;
};

// --- Agreement

namespace {

// What each rank tells each other one.
struct Introduction {
  rma::GlobalAddress grant;
  std::uint64_t is_able = 0;
};

Error error_of_exception(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const base::Error& error) {
    const bool is_unsupported = error.code() == base::StatusCode::kUnsupported;
    const bool is_memory = error.code() == base::StatusCode::kOutOfMemory;
    return {is_unsupported ? MPI_ERR_UNSUPPORTED_OPERATION
            : is_memory    ? MPI_ERR_NO_MEM
                           : MPI_ERR_OTHER,
            error.what()};
  }
}

Error error_of_other(std::size_t rank, int error_class) {
  return {error_class,
          base::format("rank {} of the communicator cannot take part in messages of streams; its own error "
                       "says why",
                       rank)};
}

// The error of all: its own, or that another rank has one.
runtime::Task<Error> agreed(CollectiveContext context, Error own) {
  const auto error_class = static_cast<std::int32_t>(own.error_class);
  const std::vector<std::byte> bytes =
      co_await allgather_bytes(context, std::as_bytes(std::span(&error_class, 1)));
  if (!own.ok()) co_return own;
  for (std::size_t i = 0; i < static_cast<std::size_t>(context.size()); ++i) {
    std::int32_t theirs = MPI_SUCCESS;
    std::memcpy(&theirs, bytes.data() + i * sizeof theirs, sizeof theirs);
    if (theirs == MPI_SUCCESS) continue;
    const bool is_unsupported = theirs == MPI_ERR_UNSUPPORTED_OPERATION;
    co_return error_of_other(i, is_unsupported ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_ERR_OTHER);
  }
  co_return Error();
}

}  // namespace

StreamTransfers::StreamTransfers(Ref<ProgramStream> stream, const Communicator& communicator)
    : stream_(std::move(stream)) {
  const RankMap& map = communicator.engine().shared().map();
  for (int rank = 0; rank < communicator.size(); ++rank) {
    peers_.push_back(
        std::make_unique<Peer>(*stream_, map.pe_of(communicator.world_rank_of_peer(rank)),
                               base::format("messages of streams between ranks {} and {} of the communicator",
                                            communicator.rank(), rank)));
  }
}

StreamTransfers::~StreamTransfers() = default;

runtime::Task<Error> StreamTransfers::connect(Ref<Communicator> communicator, Ref<ProgramStream> stream,
                                              Error own) {
  const std::shared_ptr<StreamTransfers> made(new StreamTransfers(std::move(stream), *communicator));
  Error error = co_await made->meet(communicator, std::move(own));
  if (error.ok()) error = co_await made->make_group(communicator);
  if (error.ok()) {
    communicator->stream_transfers = made;
  } else {
    co_await made->give_up();
  }
  co_return error;
}

runtime::Task<Error> StreamTransfers::meet(Ref<Communicator> communicator, Error error) {
  std::vector<Introduction> out(peers_.size());
  std::vector<Introduction> in(peers_.size());
  try {
    // Fails if the device cannot do steps.
    if (error.ok())
      base::check(stream_->backend().queue_step(memory::DeviceStep(), stream_->device(), stream_->handle()));
    for (std::size_t i = 0; error.ok() && i < peers_.size(); ++i) {
      out[i].grant = co_await peers_[i]->pipe.grant();
      out[i].is_able = 1;
    }
  } catch (...) {
    error = error_of_exception(std::current_exception());
  }
  Views sent;
  Views received;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    sent.push_back(DataView::of_bytes(&out[i], sizeof out[i]));
    received.push_back(DataView::of_bytes(&in[i], sizeof in[i]));
  }
  co_await alltoall(communicator->next_collective_contexts().local, std::move(sent), std::move(received));
  try {
    for (std::size_t i = 0; error.ok() && i < peers_.size(); ++i) {
      if (in[i].is_able == 1) {
        co_await peers_[i]->pipe.accept(peers_[i]->pe, in[i].grant);
      } else {
        error = error_of_other(i, MPI_ERR_OTHER);
      }
    }
  } catch (...) {
    error = error_of_exception(std::current_exception());
  }
  co_return co_await agreed(communicator->next_collective_contexts().local, std::move(error));
}

// The errors of a group are those of all ranks.
runtime::Task<Error> StreamTransfers::make_group(Ref<Communicator> communicator) {
  std::vector<int> pes;
  for (const auto& peer : peers_) pes.push_back(peer->pe);
  try {
    group_ = co_await make_stream_group(std::move(communicator), stream_, std::move(pes));
  } catch (const base::Error& error) {
    // Messages work without its memory, too. The code is the same on all ranks.
    const bool goes_without_group = error.code() == base::StatusCode::kUnsupported ||
                                    error.code() == base::StatusCode::kInvalidArgument ||
                                    error.code() == base::StatusCode::kOutOfMemory;
    if (!goes_without_group) co_return error_of_exception(std::current_exception());
    why_no_group_ = error.what();
  }
  co_return Error();
}

runtime::Task<> StreamTransfers::give_up() {
  std::vector<runtime::Future<>> released;
  if (group_) released.push_back(group_.close());
  for (const auto& peer : peers_) {
    for (runtime::Future<>& one : peer->pipe.begin_close()) released.push_back(std::move(one));
  }
  for (const runtime::Future<>& one : released) co_await one;
}

runtime::Task<> StreamTransfers::close() {
  std::exception_ptr failure;
  try {
    if (is_whole_) queue_all();
    co_await stream_->over();
  } catch (...) {
    failure = std::current_exception();
  }
  co_await give_up();
  if (failure) std::rethrow_exception(failure);
}

// --- Queueing

void StreamTransfers::Lane::add(const Message& message) {
  messages.push_back(message);
  ++num_added;
}

void StreamTransfers::Lane::go_on() {
  if (++piece < Pipe::num_pieces(messages[next].buffer.size_bytes)) return;
  piece = 0;
  if (++next < messages.size()) return;
  messages.clear();
  next = 0;
}

void StreamTransfers::expect_whole() const {
  if (is_whole_) return;
  throw base::Error(base::StatusCode::kClosed,
                    "an earlier call on the communicator has failed in the middle of a message; free the "
                    "communicator");
}

void StreamTransfers::add_sends(Peer& peer, queued::MessageQueue& queue) {
  for (std::uint32_t i = 0; i < Pipe::kNumPlaces && !peer.out.is_empty(); ++i) {
    const Message& message = peer.out.messages[peer.out.next];
    peer.pipe.send_piece(message.buffer, message.label, peer.out.piece, queue);
    peer.out.go_on();
  }
}

bool StreamTransfers::add_receives(Peer& peer, bool only_wanted, queued::MessageQueue& queue) {
  bool any = false;
  for (std::uint32_t i = 0; i < Pipe::kNumPlaces && !peer.in.is_empty(); ++i) {
    if (only_wanted && !peer.in.is_wanted()) break;
    const Message& message = peer.in.messages[peer.in.next];
    peer.pipe.receive_piece(message.buffer, message.label, peer.in.piece, queue);
    peer.in.go_on();
    any = true;
  }
  return any;
}

// See the head of the header for the order.
void StreamTransfers::queue_wanted() {
  expect_whole();
  is_whole_ = false;
  queued::MessageQueue queue(stream_->backend(), stream_->device(), stream_->handle());
  for (bool goes_on = true; goes_on;) {
    for (Peer* const peer : outgoing_) add_sends(*peer, queue);
    std::erase_if(outgoing_, [](const Peer* peer) { return peer->out.is_empty(); });
    const bool sends_are_left = !outgoing_.empty();
    goes_on = sends_are_left;
    for (Peer* const peer : incoming_) goes_on = add_receives(*peer, !sends_are_left, queue) || goes_on;
    std::erase_if(incoming_, [](const Peer* peer) { return peer->in.is_empty(); });
    queue.flush();
  }
  is_whole_ = true;
}

void StreamTransfers::queue_all() {
  for (const auto& peer : peers_) peer->in.num_wanted = peer->in.num_added;
  queue_wanted();
}

void StreamTransfers::start_send(int to, const Message& message) {
  Peer& receiver = peer(to);
  if (receiver.out.is_empty()) outgoing_.push_back(&receiver);
  receiver.out.add(message);
}

StartedReceive StreamTransfers::start_receive(int from, const Message& message) {
  Peer& sender = peer(from);
  if (sender.in.is_empty()) incoming_.push_back(&sender);
  sender.in.add(message);
  return {from, sender.in.num_added};
}

void StreamTransfers::send(int to, const Message& message) {
  start_send(to, message);
  queue_wanted();
}

void StreamTransfers::receive(int from, const Message& message) {
  want(start_receive(from, message));
  queue_wanted();
}

void StreamTransfers::want(StartedReceive receive) {
  if (receive.peer < 0) return;
  Lane& in = peer(receive.peer).in;
  in.num_wanted = std::max(in.num_wanted, receive.number);
}

}  // namespace weft::mpi
