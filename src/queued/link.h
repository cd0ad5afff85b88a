// Two PEs whose streams exchange messages: each end grants the other places where messages land, once. After that, a message is one
// step on the sender's stream and one on the receiver's, and no CPU takes part.
//
//   sender's end     waits until the place is free, writes into it over the peers' mapping, and signals the arrival
//   receiver's end   frees the place of the message before, and waits for the arrival
//
// Small messages travel as packets (memory/kinds/device_message.h): through memory of Weft's own behind the words, from which the
// receiver's end copies into the landing. Very large ones go by the copy engine, between two ends of the sender.
//
// The n-th message of a direction lands in place n % num_landings. Each place has counts and words of its own. So ends that a graph
// has captured go on where the launch before has stopped, and if the two PEs use the places in different orders, streams wait for
// ever, but no message is overwritten.
//
// exchange() does both for several links in the fewest launches. It is as if all sends came first and then all receives.
//
// Memory: the words are a segment of this PE's device. Landings are the program's, kept until close() is over.
// Threads: the PE's. Claims: what the peer grants is checked by accept().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/memory/buffer.h"
#include "weft/rma/global_memory.h"
#include "weft/runtime/task.h"

#include "memory/kinds/kind.h"
#include "queued/message_queue.h"
#include "queued/stream_watch.h"

namespace weft::queued {

inline constexpr std::size_t kMaxLandings = 8;
// What an end grants the other, as it travels.
struct Grant {
  std::uint64_t size_bytes = 0;  // of each landing
  std::uint64_t num_landings = 0;
  rma::GlobalAddress words;
  std::array<rma::GlobalAddress, kMaxLandings> landings;
};
static_assert(std::is_trivially_copyable_v<Grant>);

class Link;

// A link of an exchange.
struct LinkSide {
  Link* link = nullptr;
  memory::ConstBuffer message;
  std::size_t landing = 0;  // result
};

class Link {
 public:
  // `landings`: device memory of one size, on `device`, for messages of the peer: 2 to kMaxLandings, or none if this end only sends. `name` is for
  // errors: "the queued channel ...". Throws Error for other memory.
  Link(rma::GlobalMemory& memory, memory::Place device, std::vector<memory::Buffer> landings,
       std::function<std::string()> name);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Makes what the grant names.
  runtime::Task<Grant> grant();
  // The grant of the peer, which is PE `pe`. Throws kUnsupported if this PE's device does not reach the peer's memory, and kCorrupt
  // for a grant that no end makes. The ends may be of one PE.
  runtime::Task<> accept(int pe, const Grant& grant);

  // Queues. Throws Error for misuse; nothing is queued then. If only a part could be queued, the link is closed. A direction may
  // change its stream: the new one waits for the work on the old one. A capture takes up one stream of a direction.
  void send(const memory::ConstBuffer& message, memory::StreamHandle stream);
  // The landing: it has the message for work that is queued on `stream` after this call and before the next one.
  std::size_t receive(memory::StreamHandle stream);
  // send() and receive() of each side. REQUIRES: there is one.
  static void exchange(std::span<LinkSide> sides, memory::StreamHandle stream);

  // Ready when what was queued is over.
  runtime::Future<> over() { return watch_.over(); }
  // Waits for that, and until the peer has closed its end too: then the landings are the program's again.
  runtime::Task<> close();
  // Gives up what grant() has made, when the ends do not agree.
  void reset();

 private:
  struct Words;
  struct Held;

  // The stream of a direction, and its order.
  struct Direction {
    std::size_t next = 0;  // message
    memory::StreamHandle stream = nullptr;
    bool is_used = false;
  };

  memory::KindBackend& kind() const;
  // Queues what `add` adds for each side. The links are closed if only a part could be queued.
  template <class Add>
  static void launch(std::span<LinkSide> sides, memory::StreamHandle stream, Add add);
  void add_send(const LinkSide& side, MessageQueue& queue);
  void add_receive(LinkSide& side, MessageQueue& queue);
  // What the next message does here. `landing` is the result of the second.
  memory::MessageEnd sending(const memory::ConstBuffer& message) const;
  memory::MessageEnd receiving(std::size_t& landing) const;
  // Throw Error, also for what must not begin on `stream`. Nothing is queued but the order of a direction.
  void begin_send(const memory::ConstBuffer& message, memory::StreamHandle stream);
  void begin_receive(memory::StreamHandle stream);
  std::size_t next_place() const { return out_.next % num_peer_landings_; }
  std::size_t next_landing() const { return in_.next % landings_.size(); }
  // Work that is queued on `stream` now comes behind the direction's.
  void order(Direction& direction, memory::StreamHandle stream);
  void expect_open() const;
  [[noreturn]] void refuse(base::StatusCode code, const std::string& why) const;

  rma::GlobalMemory& memory_;
  memory::Place device_;
  std::vector<memory::Buffer> landings_;
  std::function<std::string()> name_;
  std::size_t message_bytes_ = 0;  // that the peer receives
  std::size_t num_peer_landings_ = 0;
  Direction out_;
  Direction in_;
  bool is_open_ = false;
  std::shared_ptr<Held> held_;  // what queued steps use
  StreamWatch watch_;
};

}  // namespace weft::queued
