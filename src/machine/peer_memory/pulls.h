// Receives of device memory whose bytes a device of this PE copies out of the sender's memory, which it has mapped: the
// announcement of the message has named that memory (source_name.h). The sender is told when the copy is over.
//
// Threads: the PE's. Invariant: a receive completes exactly once, and not while a device uses its buffer.
#pragma once

#include <optional>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/mapping/imports.h"
#include "machine/peer_memory/mapping/peer_operation.h"
#include "machine/peer_memory/mapping/peer_stream.h"
#include "machine/peer_memory/mapping/source_name.h"

namespace weft::machine {

class Pulls {
 public:
  // Both must outlive it.
  Pulls(PeerContext& context, Imports& imports) : context_(context), imports_(imports) {}
  Pulls(const Pulls&) = delete;
  Pulls& operator=(const Pulls&) = delete;

  // Starts such a receive: the contract of Machine::tag_receive, after the work queued on the buffer's stream. Nothing
  // is returned and nothing was done if the sender's memory cannot be mapped, or if others should copy too.
  std::optional<base::Status> start(const IncomingStream& stream, StreamMessage message,
                                    const SourceName& source, const memory::Buffer& buffer,
                                    base::Completion* user);

  // Whether start() may begin one more.
  bool has_room() const;
  bool has_copies() const { return !pulls_.empty(); }
  // Ends the receives that devices do not finish.
  void end_close();

 private:
  struct Pull;

  void copied(Pull& pull, base::Status status);

  PeerContext& context_;
  Imports& imports_;
  std::vector<Pull*> pulls_;
};

}  // namespace weft::machine
