// A message whose buffers land: in the places that its poster chose, or in memory of the landing pool.
//
// Frees itself when all have ended; then the message is handled, or dropped when one was revoked or the
// poster did not want it. Private to attachments.*. Threads: the PE's.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/runtime/message.h"

#include "runtime/message/attached.h"
#include "runtime/message/attachments.h"

namespace weft::runtime {

class Attachments::Arrival {
 public:
  // `wanted`: whether the message is to be handled afterwards.
  static void start(Attachments& owner, MessagePtr message, std::span<Landing> landings, bool wanted);

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
  };

  Arrival(Attachments& owner, MessagePtr message, bool wanted);

  void begin(std::size_t which, Landing& landing);
  // Empty, and this arrival has failed, when there is no memory.
  Attachment allocate(std::size_t size_bytes, memory::Place place);
  void receive(Piece& piece, std::size_t which);
  void copy_source(Piece& piece, memory::Place place);
  void copy(Piece& piece, const Attachment& from);
  void received(Piece& piece, base::Status status, std::size_t size_bytes);
  void ended(Piece& piece, base::Status status);
  void fail(base::Status status, std::size_t size_bytes);
  void all_ended();
  void forward();

  Attachments& owner_;
  Runtime& runtime_;
  MessagePtr message_;
  std::vector<Piece> pieces_;
  bool is_receiving_;
  bool wanted_;
  bool was_posted_;
  bool failed_ = false;
  std::size_t awaited_ = 1;  // and the loop that starts them
};

}  // namespace weft::runtime
