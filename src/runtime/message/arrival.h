// A message whose buffers land: in the places that its poster chose, or in memory of the pool of receive buffers.
//
// An arrival that cannot end at once frees itself when the last buffer has ended, and then tells its owner.
// Private to the message layer. Threads: the PE's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/message.h"

#include "runtime/message/attached.h"
#include "runtime/message/receive_buffer_pool.h"

namespace weft::runtime {

class Arrival {
 public:
  struct Owner {
    // All buffers have ended: the message is complete and wanted, or else to be dropped. May be called by the
    // machine or the memory layer.
    virtual void landed(MessagePtr message, bool complete) = 0;
    // In a job that outlives losses: of each arrival.
    virtual void begun(Arrival& arrival) = 0;
    virtual void over(Arrival& arrival) = 0;

   protected:
    ~Owner() = default;
  };
  struct Landed {
    MessagePtr message;
    bool complete = false;
  };

  // Lands the buffers of `message`; `wanted`: whether it is to be handled afterwards. Returns it when all have
  // ended at once; otherwise `owner` gets it later.
  static Landed start(Owner& owner, ReceiveBufferPool& pool, MessagePtr message,
                      std::span<ReceiveBuffer> receive_buffers, bool wanted);

  ~Arrival();
  // Whether the PE that has sent the message is lost.
  bool comes_from_lost() const;
  // Ends the receives that have not begun to receive. May free this object.
  void cancel();

 private:
  // One buffer; as a Completion, its receive and the copy after it.
  struct Piece final : base::Completion {
    Piece() : base::Completion(&Piece::ended) {}
    static void ended(base::Completion* completion, base::Status status, std::size_t size_bytes);

    Arrival* arrival = nullptr;
    std::size_t size_bytes = 0;  // of what comes
    memory::Kind sender_kind = memory::Kind::kHost;
    Attachment source;     // on this PE already
    Attachment temporary;  // receives what is larger than its room
    Attachment room;
    bool receiving = false;
    bool is_discarded = false;
    std::byte discarded{};  // the receive of a message that is discarded is too small for it
  };

  // Larger buffers of host memory that nobody wants, or that their rooms cannot hold, are discarded: a peer must not decide how much
  // memory this PE takes for them.
  static constexpr std::size_t kMostUnwantedBytes = std::size_t{1} << 20;

  Arrival(Owner& owner, ReceiveBufferPool& pool, MessagePtr message, bool wanted);

  // The PE that the message names as its sender; -1 if there is no such PE.
  int source_pe() const;
  void begin(std::size_t which, ReceiveBuffer& receive_buffer);
  bool is_to_be_discarded(const Piece& piece) const;
  // Empty, and this arrival has failed, when there is no memory.
  Attachment allocate(std::size_t size_bytes, memory::Place place);
  void receive(Piece& piece, std::size_t which);
  void copy_source(Piece& piece, memory::Place place);
  void copy(Piece& piece, const Attachment& from);
  void received(Piece& piece, base::Status status, std::size_t size_bytes);
  void ended(base::Status status, std::size_t size_bytes);
  void fail(base::Status status, std::size_t size_bytes);
  // All pieces have ended: tells the owner, and frees this object.
  void end();
  Landed finish();

  Owner& owner_;
  Scheduler& scheduler_;
  ReceiveBufferPool& pool_;
  MessagePtr message_;
  Attached& attached_;
  std::vector<Piece> pieces_;
  bool is_receiving_;
  bool wanted_;
  bool failed_ = false;
  std::size_t awaited_ = 1;  // and the loop that starts them
};

}  // namespace weft::runtime
