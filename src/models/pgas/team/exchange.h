// The messages of a team's collective operations on one PE: parts of data from one rank to another.
//
// A part is known by the collective, a step of its algorithm and the rank that it comes from. The receiver posts a Receive,
// before or after the part has arrived. A part is bytes in the message, an out-of-band buffer, or the error of the sender. A
// buffer stays at its sender until its Receive says where it lands.
//
// It numbers the collectives that the engine carries out too, and ends the job if ranks disagree about the
// type of one.
//
// A peer's message is a claim: its rank, the kind of the collective and the size of a buffer are checked. Threads: the PE's.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/memory/buffer.h"
#include "weft/pgas/team_id.h"
#include "weft/runtime/message.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/work.h"

#include "collective/inbox.h"
#include "models/pgas/team/collective_type.h"
#include "models/pgas/team/members.h"

namespace weft::pgas {

// One part of one collective, as the rank that sends and the one that receives name it.
struct PartId {
  std::uint32_t collective = 0;
  CollectiveType type;
  std::uint32_t step = 0;
};

// The wire format in front of a part.
struct PartHeader {
  TeamId team;
  std::uint32_t collective = 0;  // the last bits of its number
  CollectiveType type;
  std::uint32_t step = 0;
  std::uint32_t failed = 0;  // 1: the packed error of the sender follows
};
static_assert(sizeof(PartHeader) == 24);

// The result of a Receive.
struct Part {
  runtime::MessagePtr message;       // keeps the bytes
  std::span<const std::byte> bytes;  // none if a buffer has landed
  std::exception_ptr error;
};

class Receive;

class Exchange final : private collective::NumberCheck {
 public:
  // `handler`: of the parts of all teams; its message handler calls arrive(), its poster post(). `inbox`: of
  // this rank in the team's group, for the collectives that the engine carries out.
  Exchange(runtime::Messenger& messenger, runtime::HandlerId handler, const Members& members,
           collective::Inbox& inbox)
      : messenger_(messenger), handler_(handler), members_(members), inbox_(inbox) {
    inbox_.number_check = this;
  }
  ~Exchange() { inbox_.number_check = nullptr; }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // This rank begins its next collective. Returns the last bits of its number, which all ranks give in the
  // same order. The job fails if another rank has begun another type under this number, as soon as a message
  // tells it.
  std::uint32_t begin(const CollectiveType& type);
  // The same for a collective of parts. REQUIRES: end() is called, when no more parts of it will come.
  std::uint32_t begin_parts(const CollectiveType& type);
  void end(std::uint32_t collective);
  // How many this rank has begun.
  std::uint64_t num_begun() const { return next_; }

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
  // In the inbox of the engine, which sends no messages of such a call: a message of its counter is of
  // another type.
  struct Begun final : collective::Awaiting {
    using Awaiting::Awaiting;
    Taken take(const collective::StepHeader&, std::span<const std::byte>) override { return Taken::kNot; }
    void note_kept(const collective::StepHeader&) override {}
  };
  // One that this rank has begun and not ended, or of which parts have come ahead.
  struct Collective {
    std::optional<Begun> begun;
    std::vector<PartEntry> entries;  // one for each child in a tree, or for each step
  };

  // --- collective::NumberCheck
  void check(int from, std::uint64_t number) override;

  // How many collectives this rank has begun since, and with it; none if it is 0 or negative.
  std::int32_t age_of(std::uint32_t collective) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(next_) - collective);
  }
  // Nothing if it is over and has not begun lately. REQUIRES: it has begun.
  std::optional<CollectiveType> type_of(std::uint32_t collective) const;

  // Null if there is none.
  PartEntry* find(int from, std::uint32_t collective, std::uint32_t step);
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
  collective::Inbox& inbox_;
  std::uint64_t next_ = 0;
  std::array<CollectiveType, 64> last_;                        // that this rank has begun
  std::unordered_map<std::uint32_t, Collective> collectives_;  // by number
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
