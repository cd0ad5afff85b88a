// The sends of this PE that wait until their receives are posted: those of channels for whose memory the transport is
// slow (memory that cannot be mapped goes at less than 1 GB/s), and those that a model has announced
// (PeerMemory::send_announced). Every other send that finds nothing posted goes with its tag.
//
// The sender announces the former to the receiver (kWaiting). The receiver answers each once: with kPosted when the
// receive is posted, with kByTag when it will not be, for example because it is of host memory, or, if the announcement
// named the sender's memory, with kBegun or kPulled.
//
// The sender also looks for the posting itself: a receiver that starts many receives, or computes, answers late.
//
// Threads: the PE's. Invariant: a send completes exactly once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "weft/memory/buffer.h"

#include "machine/peer_memory/mapping/peer_operation.h"
#include "machine/peer_memory/mapping/peer_stream.h"

namespace weft::machine {

class WaitingSends {
 public:
  // Smaller messages go with their tags: the transport is fast enough, and may complete them before their receive.
  static constexpr std::size_t kLeastBytes = std::size_t{16} << 10;

  struct Send {
    OutgoingStream stream;
    StreamMessage message;
    memory::ConstBuffer source;
    base::Completion* user = nullptr;
    // For host memory that its owner may move: where `source` is now.
    MovableSource* movable = nullptr;
    // Not null: the announcement named the source. What the name needs.
    std::shared_ptr<void> named = nullptr;
    // The receive was posted, and could not be copied into. The receiver's answer decides.
    bool needs_answer = false;
  };

  explicit WaitingSends(PeerContext& context);
  ~WaitingSends();
  WaitingSends(const WaitingSends&) = delete;
  WaitingSends& operator=(const WaitingSends&) = delete;

  // Keeps the send, and announces it unless the model has. REQUIRES: no send of that message waits.
  void add(const Send& send, bool is_announced = false);
  // The receiver has answered. Nothing if no such send waits.
  std::optional<Send> take(int pe, Tag stream, std::uint32_t message);
  // The first send of each stream, if its receive is posted.
  std::vector<Send> take_posted();
  bool is_empty() const { return sends_.empty(); }
  void close();

 private:
  struct WaitingOperation;

  PeerContext& context_;
  std::map<std::tuple<int, Tag, std::uint32_t>, std::unique_ptr<WaitingOperation>> sends_;
};

}  // namespace weft::machine
