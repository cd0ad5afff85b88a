// Observes the events of one PE, for traces, load balancing and tests.
//
// Scheduler::set_observer() sets the PE's observer; without one each place below costs a branch. PEs are
// independent: some may have an observer and others none. All functions are called on the PE's thread, inside
// the scheduler: they must not throw, send, or set a future.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/memory/buffer.h"
#include "weft/runtime/handler_id.h"

namespace weft::runtime {

// An element of a collection, by the numbers under which the location service knows it.
struct ElementId {
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
};

struct MessageEvent {
  // The same for the creation, the sends and the delivery of one message, on all PEs; no other message of the
  // job has it. 0: the PE that made the message had no observer. A message gets it when it is made and carries
  // it in 8 bytes behind its payload; a broadcast is one message for each hop down its tree.
  std::uint64_t id = 0;
  HandlerId handler = 0;
  int pe = 0;  // the destination of a send; the source of a delivery; this PE for a creation
  std::size_t payload_bytes = 0;
  bool is_control = false;  // the runtime's own, which quiescence does not count
};

struct EntryEvent {
  ElementId element;
  // "&Ring::token", as the compiler writes it; "Ring.token" of a Python chare. Lives as long as the process.
  std::string_view method;
  const void* run =
      nullptr;  // the same at begin and end; unique among the runs that have begun and not ended
};

// A buffer that this PE's machine moves: an argument that travels beside its message, a message of a channel, a
// one-sided transfer, and the runtime's own messages.
struct TransferEvent {
  std::uint64_t number = 0;  // of this PE's transfers; the same at begin and end
  std::string_view
      type;  // "tagged send", "active message", "put", "get", "peer copy"; "receive" if it was staged
  std::string_view path;                    // "through UCX", "staged", "own PE", "peer-mapped"
  memory::Kind kind = memory::Kind::kHost;  // of its device side if it has one
  std::size_t size_bytes = 0;
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Whether the message_... and transfer_... functions below are called, and messages carry a number for them. Asked
  // once, by set_observer().
  virtual bool observes_communication() const { return true; }
  virtual void message_created(const MessageEvent&) {}
  // Given to the machine, or, for this PE, to the queue. Again for each PE that forwards it and has an observer.
  virtual void message_sent(const MessageEvent&) {}
  // Its handler is about to run.
  virtual void message_delivered(const MessageEvent&) {}
  // An entry method, called through a proxy; its arguments are unpacked. If it is a coroutine, it ends with the
  // coroutine: others begin and end while it is suspended. A coroutine that the end of the job abandons does not end.
  virtual void entry_began(const EntryEvent&) {}
  virtual void entry_ended(const EntryEvent&) {}
  // The machine has taken a transfer that `weft run --stats` counts; it is over, and its buffer is the owner's again.
  // `succeeded` is false after an error or a cancellation.
  virtual void transfer_began(const TransferEvent&) {}
  virtual void transfer_ended(const TransferEvent&, bool /*succeeded*/) {}
  // The PE found nothing to do in a turn; it has work again.
  virtual void idle_began() {}
  virtual void idle_ended() {}
};

}  // namespace weft::runtime
