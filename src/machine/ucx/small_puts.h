// Small puts as active messages, to PEs to which UCX has no puts of the hardware (shared memory, TCP). There UCX sends a put as
// a message too, and its flush costs as much again. The owner's CPU takes part either way.
//
// A put names a registration of the owner and an offset. The owner checks both, copies the bytes and answers; then the put is
// over and its data visible. A peer that has failed answers no more: end_failed() ends the puts to it.
//
// Threads: the PE's thread. Invariant: a put or a flush completes exactly once, never inside the call that started it. A put
// allocates only if more are in flight than ever before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "machine/staging/transport_machine.h"
#include "machine/ucx/memory_region.h"

namespace weft::machine::ucx {

class SmallPuts {
 public:
  // The size up to which a put of one's own is faster than UCX's: 0.67 of its time at 8 bytes, 0.96 at 1 KiB, 1.3 at 4 KiB.
  static constexpr std::size_t kMostBytes = 1024;

  // Both must outlive this object.
  SmallPuts(TransportMachine& machine, const MemoryRegions& regions);
  ~SmallPuts();
  SmallPuts(const SmallPuts&) = delete;
  SmallPuts& operator=(const SmallPuts&) = delete;

  // Installs the handlers.
  base::Status open();

  // A put that completes when its data is visible. `region` is the owner's number of the registration. `local` is read until
  // the completion. REQUIRES: host memory on both sides, at most kMostBytes.
  base::Status start(int pe, const memory::ConstBuffer& local, std::uint64_t region, std::size_t offset_bytes,
                     base::Completion* completion);

  // Returns start(completion) of the transport's flush. The completion is called after the puts that are in flight to `pe` now,
  // too; -1 for all PEs. A put that its owner refuses tells that itself: the flush does not fail.
  template <class Start>
  base::Status flush(int pe, base::Completion* completion, Start start) {
    if (in_flight_to(pe) == 0) [[likely]]
      return start(completion);
    Flush* const flush = begin_flush(pe, completion);
    return flush_started(flush, start(as_completion(flush)));
  }

  // Ends the puts to PEs for which has_failed(pe) is true, with failure(pe, size_bytes).
  template <class HasFailed, class Failure>
  void end_failed(HasFailed has_failed, Failure failure) {
    // By index: a completion may start further puts.
    for (std::size_t slot = 0; slot < puts_.size(); ++slot) {
      if (const auto [pe, size_bytes] = in_flight(slot); pe >= 0 && has_failed(pe)) {
        end(slot, failure(pe, size_bytes));
      }
    }
  }
  // Ends all puts with that status. REQUIRES: UCX sends nothing any more.
  void close(const base::Status& status);

 private:
  struct Put;
  struct Flush;
  struct Request;
  struct Answer;

  static void on_put(void* self, AmArrival& arrival);
  static void on_answer(void* self, AmArrival& arrival);
  base::StatusCode serve(const Request& request, const AmArrival& arrival) const;

  Put& take(int pe, std::size_t size_bytes);
  // The PE and the size of the put in that slot; -1 if there is none.
  std::pair<int, std::size_t> in_flight(std::size_t slot) const;
  // At once, or when the message is sent. `fails_flushes`: the data of other puts may not be visible either.
  void end(std::size_t slot, base::Status status, bool fails_flushes = true);
  std::size_t in_flight_to(int pe) const {
    return pe < 0 ? num_in_flight_ : num_in_flight_to_[static_cast<std::size_t>(pe)];
  }
  void recycle(Put& put);
  static void on_sent(base::Completion* put, base::Status status, std::size_t size_bytes);

  Flush* begin_flush(int pe, base::Completion* completion);
  base::Status flush_started(Flush* flush, base::Status status);
  static base::Completion* as_completion(Flush* flush);
  static void on_flushed(base::Completion* flush, base::Status status, std::size_t size_bytes);
  void finish(Flush* flush);

  TransportMachine& machine_;
  const MemoryRegions& regions_;
  // Each put keeps its place, which is the slot that the answer names.
  std::vector<std::unique_ptr<Put>> puts_;
  Put* free_ = nullptr;
  std::size_t num_in_flight_ = 0;
  std::vector<std::size_t> num_in_flight_to_;  // by PE
  std::uint64_t num_started_ = 0;
  std::vector<std::unique_ptr<Flush>> flushes_;
};

}  // namespace weft::machine::ucx
