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
#include <span>
#include <utility>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "machine/ucx/handles/memory_region.h"
#include "machine/ucx/messages/short_messages.h"
#include "machine/ucx/messages/small_put_messages.h"

namespace weft::machine::ucx {

class SmallPuts {
 public:
  // The size up to which a put of one's own is faster than UCX's: 0.67 of its time at 8 bytes, 0.96 at 1 KiB, 1.3 at 4 KiB.
  static constexpr std::size_t kMostBytes = 1024;

  // Both must outlive this object.
  SmallPuts(ShortMessages& messages, const MemoryRegions& regions);
  ~SmallPuts();
  SmallPuts(const SmallPuts&) = delete;
  SmallPuts& operator=(const SmallPuts&) = delete;

  // Installs the handlers.
  base::Status open(ucp_worker_h worker);

  // Whether a message can name the place and the put. If not, the put is left to UCX.
  bool can_take(std::uint64_t region, std::size_t offset_bytes) const {
    return region < end_of_regions_ && offset_bytes >> SmallPutRequest::kOffsetBits == 0 &&
           (free_ != nullptr || puts_.size() < kMostPuts);
  }
  // A put that completes when its data is visible. `region` is the owner's number of the registration. `local` is read until
  // the completion. REQUIRES: host memory on both sides, at most kMostBytes; can_take().
  [[gnu::always_inline]] base::Status start(int pe, const memory::ConstBuffer& local, std::uint64_t region,
                                            std::size_t offset_bytes, base::Completion* completion) {
    Put& put = free_ != nullptr ? *free_ : make_put();
    // Also of a start that fails: if its message arrived all the same, its answer must not end the next put.
    const std::uint64_t number = num_started_++;
    const SmallPutRequest request{region, offset_bytes, put.slot, own_pe_, ticket_of(number)};
    base::Status sent = messages_.send(pe, kSmallPutAmId, request.pack(), local.data, local.size_bytes, &put);
    if (sent.failed()) [[unlikely]]
      return sent;
    // Neither an answer nor the end of the send is delivered inside a start.
    free_ = put.next_free;
    put.user = completion;
    put.pe = pe;
    put.size_bytes = static_cast<std::uint32_t>(local.size_bytes);
    put.number = number;
    put.is_sending = sent.is_pending();
    ++num_in_flight_;
    ++num_in_flight_to_[static_cast<std::size_t>(pe)];
    return base::Status::pending();
  }

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
      if (Put& put = put_in(slot); put.user != nullptr && has_failed(put.pe)) {
        end(put, failure(put.pe, std::size_t{put.size_bytes}));
      }
    }
  }
  // Ends all puts with that status. REQUIRES: UCX sends nothing any more.
  void close(const base::Status& status);

 private:
  static constexpr std::size_t kMostPuts = std::size_t{1} << SmallPutRequest::kSlotBits;

  // A put in flight. It is the completion of its message. It ends when its outcome is here and the message is sent: until then UCX
  // reads the caller's buffer.
  struct Put : base::Completion {
    Put(SmallPuts& owner_in, std::uint32_t slot_in)
        : Completion(&SmallPuts::on_sent), owner(owner_in), slot(slot_in) {}

    SmallPuts& owner;
    base::Completion* user = nullptr;  // null: there is no put
    Put* next_free = nullptr;
    std::uint64_t number = 0;  // in the order of the starts
    std::uint32_t slot;
    int pe = -1;
    std::uint32_t size_bytes = 0;
    bool is_sending = false;
    bool is_over = false;  // while it is being sent: the outcome is here
    bool fails_flushes = false;
    base::Status outcome;
  };
  struct Flush;

  static std::uint32_t ticket_of(std::uint64_t number) {
    return static_cast<std::uint32_t>(number & SmallPutRequest::mask(SmallPutRequest::kNumberBits));
  }
  [[gnu::noinline]] Put& make_put();
  Put& put_in(std::size_t slot) { return *puts_[slot]; }

  [[gnu::always_inline]] static inline void on_put(void* self, std::span<const std::byte> header,
                                                   const std::byte* data, std::size_t size_bytes);
  [[gnu::always_inline]] static inline void on_answer(void* self, std::span<const std::byte> header,
                                                      const std::byte* data, std::size_t size_bytes);
  base::StatusCode serve(const SmallPutRequest& request, const std::byte* data, std::size_t size_bytes) const;
  static void on_answer_sent(base::Completion* completion, base::Status status, std::size_t size_bytes);

  [[gnu::noinline]] void end_by_answer(Put& put, const SmallPutAnswer& answer);
  // At once, or when the message is sent. `fails_flushes`: the data of other puts may not be visible either.
  void end(Put& put, base::Status status, bool fails_flushes = true);
  // The put is not in flight any more. Returns its completion.
  base::Completion* leave(Put& put) {
    --num_in_flight_;
    --num_in_flight_to_[static_cast<std::size_t>(put.pe)];
    return std::exchange(put.user, nullptr);
  }
  void recycle(Put& put) { put.next_free = std::exchange(free_, &put); }
  void end_in_flushes(const Put& put, const base::Status& status, bool fails_flushes);
  std::size_t in_flight_to(int pe) const {
    return pe < 0 ? num_in_flight_ : num_in_flight_to_[static_cast<std::size_t>(pe)];
  }
  static void on_sent(base::Completion* put, base::Status status, std::size_t size_bytes);

  Flush* begin_flush(int pe, base::Completion* completion);
  base::Status flush_started(Flush* flush, base::Status status);
  static base::Completion* as_completion(Flush* flush);
  static void on_flushed(base::Completion* flush, base::Status status, std::size_t size_bytes);
  void finish(Flush* flush);

  ShortMessages& messages_;
  const MemoryRegions& regions_;
  const std::uint32_t num_pes_;
  const std::uint32_t own_pe_;
  const std::uint64_t end_of_regions_;  // 0 if a message cannot name all PEs
  // Each put keeps its place, which is the slot that the answer names.
  std::vector<std::unique_ptr<Put>> puts_;
  Put* free_ = nullptr;
  std::size_t num_in_flight_ = 0;
  std::vector<std::size_t> num_in_flight_to_;  // by PE
  std::uint64_t num_started_ = 0;
  std::vector<std::unique_ptr<Flush>> flushes_;
  base::Completion answered_;  // one for all answers: none is cancelled
};

}  // namespace weft::machine::ucx
