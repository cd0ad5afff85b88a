#include "weft/channel/queued_channel.h"

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "models/channel/channels.h"
#include "queued/link.h"

namespace weft::channel {

// The ends agree by messages of a channel of their own.
struct QueuedChannel::State {
  ChannelEnd& end;
  std::shared_ptr<void> held;  // keeps the end
  std::vector<memory::Buffer> landings;
  queued::Link link;
  bool is_connecting = false;
  std::optional<runtime::Future<>> closing;  // one close() at a time, however often it is called
};

namespace {

// What this end grants. Nothing, with the reason, if it has no memory.
struct Granted {
  queued::Grant grant;
  base::Status status;
};

runtime::Task<Granted> granted(queued::Link& link) {
  Granted result;
  try {
    result.grant = co_await link.grant();
  } catch (const base::Error& error) {
    result.status = base::Status(error.code(), error.what());
  }
  co_return result;
}

base::Status peer_failed(const ChannelEnd& end) {
  return {base::StatusCode::kUnsupported,
          base::format("queued: {}: the peer could not connect; its error says why", describe(end))};
}

runtime::Task<base::Status> accepted(queued::Link& link, int pe, const queued::Grant& grant) {
  try {
    co_await link.accept(pe, grant);
  } catch (const base::Error& error) {
    co_return base::Status(error.code(), error.what());
  }
  co_return base::Status();
}

runtime::Task<> follow(runtime::Task<> task, runtime::Future<> over) {
  try {
    co_await std::move(task);
  } catch (...) {
    over.set_error(std::current_exception());
    co_return;
  }
  over.set();
}

// Starts it at once: two channels of a chare connect beside one another, whatever their order.
runtime::Future<> started(runtime::Runtime& runtime, runtime::Task<> task) {
  runtime::Future<> over = runtime.make_future();
  runtime.spawn(follow(std::move(task), over), "an operation of a queued channel");
  return over;
}

}  // namespace

QueuedChannel::QueuedChannel(chare::ChareBase& self, const Peer& peer, memory::Place device,
                             std::vector<memory::Buffer> landings, std::uint32_t id) {
  auto& runtime = self.runtime();
  auto& channels = runtime.model<Channels>();
  ChannelEnd& end = channels.end(self, peer, kQueuedChannel | id);
  state_ =
      std::shared_ptr<State>(new State{end,
                                       channels.hold(end),
                                       landings,
                                       queued::Link(runtime.offered<rma::GlobalMemory>(), device, landings,
                                                    [&end] { return "queued: " + describe(end); }),
                                       false,
                                       {}});
}

runtime::Future<> QueuedChannel::connect() { return started(*state_->end.runtime, run_connect(state_)); }

// All failures are those of both ends: each tells the other what it could make and reach.
runtime::Task<> QueuedChannel::run_connect(std::shared_ptr<State> state) {
  if (state->end.is_queued) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("queued: {} is connected already", describe(state->end)));
  }
  state->end.is_queued = true;
  state->is_connecting = true;
  try {
    Channel channel(state->end);
    const auto [own, own_status] = co_await granted(state->link);
    queued::Grant peers;
    runtime::Operation sent = channel.send(std::span(&own, 1));
    co_await channel.recv(std::span(&peers, 1));
    co_await std::move(sent);
    base::Status status = own_status;
    if (status.ok() && peers.words.is_null()) status = peer_failed(state->end);
    if (status.ok()) status = co_await accepted(state->link, static_cast<int>(state->end.peer.pe), peers);
    const std::uint8_t is_able = status.ok() ? 1 : 0;
    std::uint8_t peer_is_able = 0;
    sent = channel.send(std::span(&is_able, 1));
    co_await channel.recv(std::span(&peer_is_able, 1));
    co_await std::move(sent);
    if (status.ok() && peer_is_able == 0) status = peer_failed(state->end);
    base::check(status);
  } catch (...) {
    state->is_connecting = false;
    state->link.reset();
    state->end.is_queued = false;
    throw;
  }
  state->is_connecting = false;
}

void QueuedChannel::send(const memory::ConstBuffer& message, memory::StreamHandle stream) {
  state_->link.send(message, stream);
}

memory::Buffer QueuedChannel::recv(memory::StreamHandle stream) {
  return state_->landings[state_->link.receive(stream)];
}

memory::Buffer QueuedChannel::exchange(const memory::ConstBuffer& message, memory::StreamHandle stream) {
  queued::LinkSide side{&state_->link, message};
  queued::Link::exchange({&side, 1}, stream);
  return state_->landings[side.landing];
}

std::vector<memory::Buffer> QueuedChannel::exchange_all(std::span<const Side> sides,
                                                        memory::StreamHandle stream) {
  std::vector<queued::LinkSide> links;
  for (const Side& side : sides) links.push_back({&side.channel->state_->link, side.message});
  std::vector<memory::Buffer> landings;
  if (links.empty()) return landings;
  queued::Link::exchange(links, stream);
  for (std::size_t i = 0; i < sides.size(); ++i)
    landings.push_back(sides[i].channel->state_->landings[links[i].landing]);
  return landings;
}

runtime::Future<> QueuedChannel::over() { return state_->link.over(); }

runtime::Future<> QueuedChannel::close() {
  if (state_->is_connecting) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("queued: {} is being connected; await connect() before close()", describe(state_->end)));
  }
  if (!state_->closing.has_value()) state_->closing = started(*state_->end.runtime, run_close(state_));
  return *state_->closing;
}

runtime::Task<> QueuedChannel::run_close(std::shared_ptr<State> state) {
  const bool was_connected = state->end.is_queued;
  try {
    co_await state->link.close();
  } catch (...) {
    state->closing.reset();
    throw;
  }
  state->closing.reset();
  if (was_connected) state->end.is_queued = false;
}

}  // namespace weft::channel
