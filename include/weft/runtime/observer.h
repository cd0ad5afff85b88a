// Observes the events of one PE, for traces, load balancing and tests.
//
// Scheduler::set_observer() sets the PE's observer. Without one, each event below costs a branch. Some PEs
// may have an observer and others none. All functions are called on the PE's thread, inside the scheduler.
// They must not throw, send, or set a future.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/memory/buffer.h"
#include "weft/runtime/handler_id.h"

namespace weft::runtime {

// An element of a collection, by its numbers in the location service.
struct ElementId {
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
};

struct MessageEvent {
  // Unique in the job, and the same for the sends and the delivery of one message, on all PEs.
  // 0: the PE that made the message had no observer. A message carries its id in 8 bytes behind its payload.
  // In a broadcast each hop down the tree is a message of its own.
  std::uint64_t id = 0;
  HandlerId handler = 0;
  int pe = 0;  // the destination of a send; the source of a delivery
  std::size_t payload_bytes = 0;
  bool is_control = false;  // the runtime's own, which quiescence does not count
};

struct EntryEvent {
  ElementId element;
  // "&Ring::token", as the compiler writes it; "Ring.token" for a Python chare. Never destroyed.
  std::string_view method;
  // Identifies the run: equal in its begin and its end, and unique among the runs that have begun and not ended.
  const void* run = nullptr;
};

// A call of MPI by a rank of this PE.
struct CallEvent {
  int rank = 0;
  int thread = 0;  // of the process, in the order of their first calls
  // "MPI_Send". Never destroyed.
  std::string_view function;
};

// A buffer that this PE's machine moves: an argument that travels out of band, a message of a channel,
// a one-sided transfer, and the runtime's own messages.
struct TransferEvent {
  std::uint64_t number = 0;  // of this PE's transfers; the same at begin and end
  // "tagged send", "active message", "put", "get", "peer copy"; "receive" if it was staged.
  std::string_view type;
  std::string_view path;                    // "through UCX", "staged", "own PE", "peer-mapped"
  memory::Kind kind = memory::Kind::kHost;  // of its device side if it has one
  std::size_t size_bytes = 0;
};

// Something besides entry methods that takes a while on this PE, and shares the PE with other work: a step of load balancing, a
// checkpoint, a collective operation. Equal in its begin and its end.
struct SpanEvent {
  std::string_view group;    // "load balancing". Never destroyed.
  std::string_view name;     // "sync point". Never destroyed.
  std::uint64_t number = 0;  // unique among the spans of its group that have begun and not ended
  std::uint64_t value = 0;   // which step, or which reduction
};

// Work on a stream that a program has marked as that of an object, see metering/device_time.h.
struct DeviceWorkEvent {
  std::uint64_t number = 0;  // of this PE's; the same at begin and end
  memory::Place place;
  memory::StreamHandle stream = nullptr;
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Whether the message_... and transfer_... functions below are called, and messages carry a number for
  // them. Called once, by set_observer().
  virtual bool observes_communication() const { return true; }
  // Whether active messages are among the transfers. If not, they go their usual ways. Called once, too.
  virtual bool observes_active_messages() const { return true; }
  // The message was given to the machine or, for this PE, to the queue. PEs that forward it report it too.
  virtual void message_sent(const MessageEvent&) {}
  // The message's handler is about to run.
  virtual void message_delivered(const MessageEvent&) {}
  // An entry method that was called through a proxy begins, with its arguments unpacked, or ends. If it is a
  // coroutine, it ends with the coroutine: others begin and end while it is suspended. A coroutine that is
  // abandoned at the end of the job does not end.
  virtual void entry_began(const EntryEvent&) {}
  virtual void entry_ended(const EntryEvent&) {}
  // The same for `main`, if it is a coroutine.
  virtual void main_began(const void* /*run*/) {}
  virtual void main_ended(const void* /*run*/) {}
  // The coroutine of a run has suspended, for the first time or again, or has been resumed. `run` may have ended before it is reported
  // as suspended.
  virtual void entry_suspended(const void* /*run*/) {}
  virtual void entry_resumed(const void* /*run*/) {}
  // Begin: the machine has accepted a transfer that `weft run --stats` counts. End: the transfer is over, and
  // its owner may use the buffer. `succeeded` is false after an error or a cancellation.
  virtual void transfer_began(const TransferEvent&) {}
  virtual void transfer_ended(const TransferEvent&, bool /*succeeded*/) {}
  // Calls of a thread nest. A rank that waits in a call lets others run; one that moves ends its call on another PE. With
  // MPI_THREAD_MULTIPLE the caller is the thread with the lock of calls.
  virtual void call_began(const CallEvent&) {}
  virtual void call_ended(const CallEvent&) {}
  virtual void span_began(const SpanEvent&) {}
  virtual void span_ended(const SpanEvent&) {}
  virtual void element_left(ElementId /*element*/, int /*to_pe*/) {}
  virtual void element_arrived(ElementId /*element*/, int /*from_pe*/) {}
  // Begin: what is queued on the stream from now on belongs to the work. Measured: the device is done with it, and has taken
  // `seconds`. Work that fails is not measured.
  virtual void device_work_began(const DeviceWorkEvent&) {}
  virtual void device_work_measured(const DeviceWorkEvent&, double /*seconds*/) {}
  // Begin: the PE found nothing to do in a turn. End: it has work again.
  virtual void idle_began() {}
  virtual void idle_ended() {}
};

}  // namespace weft::runtime
