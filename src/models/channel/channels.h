// The channel model on one PE: the ends of its chares, and how the two ends of a channel find each other.
//
// Each end has a number of its own on its PE, under which it receives: the sender puts it into the tag, so
// matching needs no message besides. When an end is made it tells its peer that number, once, through the
// location service; sends wait until the peer's number is known, receives do not. Counters, one per
// direction, keep the order and wrap.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "weft/channel/channel.h"
#include "weft/runtime/runtime.h"

#include "models/channel/channel_tag.h"
#include "models/channel/direct_path.h"
#include "models/channel/failed_sends.h"
#include "models/channel/local_path.h"

namespace weft::channel {

// One chare's view of a channel: itself, its peer and the id that both name.
struct ChannelKey {
  std::uint64_t self_collection = 0;
  std::uint64_t self_index = 0;
  std::uint64_t peer_collection = 0;
  std::uint64_t peer_index = 0;
  std::uint32_t id = 0;

  friend auto operator<=>(const ChannelKey&, const ChannelKey&) = default;
  ChannelKey reversed() const { return {peer_collection, peer_index, self_collection, self_index, id}; }
};

class Channels;

// The model's message handlers: offsets in its range, see Channels::handler().
enum ChannelHandler : runtime::HandlerId {
  kAnnouncement,
  kFailedSend,
  kMailbox,
  kNoMailbox,
  kForget,
  kWake,
  kNumChannelHandlers,
};

// Where an end receives.
struct EndAddress {
  std::uint32_t pe = 0;
  std::uint32_t number = 0;  // 0: not known
};

struct ChannelEnd {
  struct WaitingSend {
    memory::ConstBuffer buffer;
    runtime::OperationState* operation;
  };

  runtime::Runtime* runtime = nullptr;
  ChannelKey key;
  std::uint32_t number = 0;
  EndAddress peer;
  EndTags send_tags;  // once the peer is known
  EndTags receive_tags;
  std::uint32_t next_send = 0;
  std::uint32_t next_receive = 0;
  std::deque<WaitingSend> waiting_sends;
  Channels* channels = nullptr;
  LocalPath::End local;
  DirectEnd direct;
};

// "the channel Ring[3] - Ring[4], id 0, on PE 3", for messages to people.
std::string describe(const ChannelEnd& end);
// Starts message `counter` on the tagged path. REQUIRES: the peer is known.
void send_tagged(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& buffer,
                 runtime::OperationState* operation);

class Channels final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{
      .name = "channel", .num_handlers = kNumChannelHandlers, .uses_tags = true};

  Channels(runtime::Runtime& runtime, const runtime::ModelRange& range);
  void close() override;
  // WEFT_CHANNEL_PATH, for measuring: whether devices may copy messages past the machine.
  std::vector<runtime::ModelOption> options() override;
  // What kept messages of device memory from peer-mapped memory.
  std::vector<std::string> report() const override;
  // An end of the element whose sends wait for its peer, or that has receives of device memory in flight.
  std::string obstacle_to_moving(runtime::ElementId element) const override;

  runtime::HandlerId handler(ChannelHandler which) const { return range_.first_handler + which; }
  std::uint8_t tag_type() const { return range_.tag_type; }

  ChannelEnd& end(chare::ChareBase& self, const Peer& peer, std::uint32_t id);
  // For tests of wrapping: what new ends count from. The same on every PE.
  void set_first_counter(std::uint32_t counter) { first_counter_ = counter; }
  // The end with that number, null when there is none.
  ChannelEnd* find(std::uint32_t number) const;
  // The same for what a message names: null also when the end's peer is known and not `peer`.
  ChannelEnd* find(std::uint32_t number, EndAddress peer) const;
  LocalPath& local_path() { return local_path_; }
  DirectPath& direct_path() { return direct_path_; }
  FailedSends& failed_sends() { return failed_sends_; }

 private:
  void announce(const ChannelEnd& end);
  void on_announcement(runtime::MessagePtr message);
  void connect(ChannelEnd& end, EndAddress peer);

  runtime::Runtime& runtime_;
  runtime::ModelRange range_;
  std::map<ChannelKey, std::unique_ptr<ChannelEnd>> ends_;
  std::vector<ChannelEnd*> numbered_ends_;  // number n is the n-th
  // Announcements for ends that their chares have not made yet.
  std::map<ChannelKey, EndAddress> early_;
  std::uint32_t first_counter_ = 0;
  LocalPath local_path_;
  DirectPath direct_path_;
  FailedSends failed_sends_;
};

}  // namespace weft::channel
