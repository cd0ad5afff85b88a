// The messages of a team's collective operations on one PE: parts of data from one rank to another.
//
// A part is known by the collective, a step of its algorithm and the rank that it comes from. The receiver posts a Receive,
// before or after the part has arrived. A part is bytes in the message, an out-of-band buffer, or the error of the sender. A
// buffer stays at its sender until its Receive says where it lands.
//
// A peer's message is a claim: its rank, the kind of the collective and the size of a buffer are checked. Threads: the PE's.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/memory/buffer.h"
#include "weft/pgas/team_id.h"
#include "weft/runtime/message.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/reduction.h"
#include "weft/runtime/work.h"

#include "models/pgas/team/members.h"

namespace weft::pgas {

enum class CollectiveKind : std::uint8_t {
  kBroadcast,
  kReduce,
  kAllReduce,
  kAllGather,
  kBroadcastBuffer,
  kReduceBuffer,
  kAllReduceBuffer,
  kNumKinds,
};

// As programs write it.
std::string_view name_of(CollectiveKind kind);

// The properties of a collective on which all its ranks must agree.
struct CollectiveType {
  CollectiveKind kind = CollectiveKind::kBroadcast;
  runtime::Reducer reducer = runtime::Reducer::kSum;
  std::uint16_t root = 0;  // its last 16 bits
  std::uint32_t data = 0;  // of the type of the values

  bool operator==(const CollectiveType&) const = default;
};

// One part of one collective, as the rank that sends and the one that receives name it.
struct PartId {
  std::uint64_t collective = 0;
  CollectiveType type;
  std::uint32_t step = 0;
};

// The wire format in front of a part.
struct PartHeader {
  TeamId team;
  std::uint64_t collective = 0;
  CollectiveType type;
  std::uint32_t step = 0;
  std::uint32_t failed = 0;  // 1: the packed error of the sender follows
};
static_assert(sizeof(PartHeader) == 32);

// The result of a Receive.
struct Part {
  runtime::MessagePtr message;       // keeps the bytes
  std::span<const std::byte> bytes;  // none if a buffer has landed
  std::exception_ptr error;
};

class Receive;

class Exchange {
 public:
  // `handler`: of the parts of all teams; its message handler calls arrive(), its poster post().
  Exchange(runtime::Messenger& messenger, runtime::HandlerId handler, const Members& members)
      : messenger_(messenger), handler_(handler), members_(members) {}

  // This rank begins its next collective. Returns the number, which all ranks give in the same order. The job fails if another
  // rank has sent parts of another type under this number.
  std::uint64_t begin(const CollectiveType& type);
  // How many this rank has begun.
  std::uint64_t num_begun() const { return next_; }
  // No more parts of it will come.
  void end(std::uint64_t collective);

  // The bytes are copied.
  void send(int to, const PartId& part, std::span<const std::byte> bytes);
  void send_error(int to, const PartId& part, const std::exception_ptr& error);
  // The memory is the operation's until it completes.
  runtime::Operation send_buffer(int to, const PartId& part, const memory::Buffer& buffer);

  // --- From the handler. REQUIRES: `from` is a rank. They throw Error(kCorrupt) for a part that came before, or of a collective
  // that is over. The job fails if this rank has begun a collective of another type.
  void arrive(int from, const PartHeader& header, runtime::MessagePtr message);
  runtime::Posting post(int from, const PartHeader& header, runtime::MessagePtr& message,
                        std::span<runtime::ReceiveBuffer> receive_buffers);
  // A buffer that post() has accepted does not come.
  void dropped(int from, const PartHeader& header);

  runtime::Messenger& messenger() const { return messenger_; }

 private:
  friend class Receive;

  // More than any algorithm has; a rank sends one part in each.
  static constexpr std::uint32_t kMostSteps = 128;

  struct PartEntry {
    std::uint32_t step = 0;
    int from = 0;
    Receive* receive = nullptr;
    runtime::MessagePtr arrived;
    runtime::MessagePtr deferred;  // its buffer is at the sender
  };
  // One that this rank has begun and not ended, or of which parts have come ahead.
  struct Collective {
    std::optional<CollectiveType> type;  // when this rank has begun it
    std::vector<PartEntry> entries;      // one for each child in a tree, or for each step
  };

  // Null if there is none.
  PartEntry* find(int from, std::uint64_t collective, std::uint32_t step);
  static PartEntry* find(Collective& collective, int from, std::uint32_t step);
  runtime::MessagePtr make_message(const PartId& part, bool failed, std::size_t size_bytes);
  void send_to(int rank, runtime::MessagePtr message);
  // The entry of a part that has arrived, until another is added. Null if the job has failed.
  PartEntry* entry_of(int from, const PartHeader& header);
  void fail_different(const CollectiveType& mine, const CollectiveType& theirs, int from);
  void add(Receive& receive);
  void remove(Receive& receive);
  // Says where the buffer lands. Returns false if the Receive cannot take it; it has ended with an error then.
  bool choose(Receive& receive, const PartHeader& header, std::span<runtime::ReceiveBuffer> receive_buffers);
  void landed(int from, const PartHeader& header, runtime::MessagePtr message);
  void give(Receive& receive, const PartHeader& header, runtime::MessagePtr message);
  // Ends the Receive and forgets the part.
  void finish(Receive& receive);

  runtime::Messenger& messenger_;
  runtime::HandlerId handler_;
  const Members& members_;
  std::uint64_t next_ = 0;
  std::unordered_map<std::uint64_t, Collective> collectives_;  // by number
};

// Awaitable, once: the part. It is posted from its construction on.
class Receive final : private runtime::ResumeWork {
 public:
  // `into`: where a buffer lands, whose size must be the same. Null: the part is bytes.
  Receive(Exchange& exchange, int from, const PartId& part, const memory::Buffer* into = nullptr);
  ~Receive();
  Receive(const Receive&) = delete;
  Receive& operator=(const Receive&) = delete;

  auto operator co_await() {
    struct ReceiveAwaiter {
      Receive& receive;
      bool await_ready() const { return receive.is_done_; }
      void await_suspend(std::coroutine_handle<> waiting) const { receive.wait(waiting); }
      Part await_resume() const { return std::move(receive.part_); }
    };
    return ReceiveAwaiter{*this};
  }

 private:
  void wait(std::coroutine_handle<> waiting);

  friend class Exchange;

  Exchange& exchange_;
  int from_;
  PartId id_;
  bool takes_buffer_;
  memory::Buffer into_;
  bool is_done_ = false;
  bool is_landing_ = false;  // its buffer
  Part part_;
};

}  // namespace weft::pgas
