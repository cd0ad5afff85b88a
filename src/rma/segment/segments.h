// The segments of this PE, and those of other PEs that it knows.
//
// A freed segment is reclaimed when no operation of any PE uses it. Until then its memory stays, so no operation that has
// begun can reach other memory.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "weft/base/status.h"
#include "weft/rma/segment.h"
#include "weft/rma/segment_cache.h"
#include "weft/runtime/runtime.h"

#include "rma/segment/known_segment.h"
#include "rma/segment/segment_messages.h"
#include "rma/segment/segment_states.h"
#include "rma/segment/shared_parts.h"

namespace weft::rma {

struct SegmentHandlers {
  runtime::HandlerId others = 0;
  runtime::HandlerId question = 0;  // urgent
};

class Segments final : private SegmentOwner {
 public:
  // `cache` must outlive it.
  Segments(runtime::Runtime& runtime, SegmentHandlers handlers, SegmentCache& cache);
  ~Segments();
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  // Throw Error.
  Segment make(std::size_t size_bytes, memory::Place place);
  Segment make_at(void* address, std::size_t size_bytes);

  // The segment of a pointer; null if this PE has to ask for it first. Throws Error for a pointer that leads nowhere.
  KnownSegment* find(const GlobalAddress& address);
  // As find(), and throws Error unless the segment contains these bytes. Inline for the segments that were found last: each
  // operation through the machine pays for the call.
  KnownSegment* find_inside(const GlobalAddress& address, std::size_t size_bytes) {
    KnownSegment* const last = last_found(address).segment;
    if (!closed_ && last != nullptr && last->start.segment_word() == address.segment_word() &&
        is_usable(*last) && is_inside(*last, address, size_bytes)) [[likely]] {
      return last;
    }
    return find_elsewhere(address, size_bytes);
  }
  // One that this PE knows, also if it has been freed; null if there is none.
  KnownSegment* known(const GlobalAddress& address) {
    KnownSegment* const last = last_found(address).segment;
    return last != nullptr && last->start.segment_word() == address.segment_word() ? last : lookup(address);
  }
  // Asks for it if need be. Throws Error for a pointer that leads nowhere.
  runtime::Task<SegmentUse> reach(GlobalAddress address);
  // Gets the machine's key to a segment of another PE. Throws Error if it has been freed.
  runtime::Task<> get_key(KnownSegment& segment);
  // Throws Error unless the segment contains these bytes and is live.
  void expect_inside(const KnownSegment& segment, const GlobalAddress& address, std::size_t size_bytes) const;
  SegmentUse use(KnownSegment& segment) { return {segment, &Segments::use_ended, this}; }
  // What handles that may outlive the job share: null when it has ended.
  const std::shared_ptr<SegmentOwner*>& owner() const { return self_; }
  // After the end of a use without an object, see KnownSegment::end_use(). May destroy the segment.
  void reclaim_if_unused(KnownSegment& segment);

  void set_mapping(bool is_on) { maps_ = is_on; }
  void set_has_other_hosts(bool has_other_hosts) { has_other_hosts_ = has_other_hosts; }
  std::size_t size() const { return segments_.size(); }
  // The job has ended: releases all memory. Entries stay until the destructor.
  void close();

 private:
  static constexpr std::uint64_t key_of(const GlobalAddress& address) {
    return GlobalAddress(address.pe(), address.segment(), memory::Kind::kHost, 0).segment_word();
  }
  void publish(const GlobalAddress& segment) override;
  runtime::Future<> release(const GlobalAddress& segment) override;
  static void use_ended(void* self, KnownSegment& segment);

  static bool is_usable(const KnownSegment& segment) {
    return segment.is_known && !segment.is_freed && load_state(segment.state) == SegmentState::kLive;
  }
  static bool is_inside(const KnownSegment& segment, const GlobalAddress& address, std::size_t size_bytes) {
    return size_bytes <= segment.size_bytes && address.offset_bytes() <= segment.size_bytes - size_bytes;
  }
  [[gnu::noinline]] KnownSegment* find_elsewhere(const GlobalAddress& address, std::size_t size_bytes);

  std::uint32_t next_number();
  Segment add(std::uint32_t number, KnownSegment segment, SegmentMemory memory);
  void enter_in_cache(const KnownSegment& segment);
  KnownSegment* lookup(const GlobalAddress& address);
  KnownSegment& lookup_or_make(int pe, std::uint32_t number);
  KnownSegment& ask(const GlobalAddress& address, bool needs_key);
  void erase(std::uint64_t key);
  void release_memory(KnownSegment& segment);

  template <class Contents>
  void send(int pe, SegmentMessage type, const Contents& contents) {
    if (!closed_) runtime_.send(pe, runtime::Message::pack(runtime_, handlers_.others, type, contents));
  }
  void on_message(runtime::Message& message);
  void on_question(runtime::Message& message);
  SegmentDescription answer_to(int pe, const SegmentQuestion& question);
  void on_description(int pe, const SegmentDescription& description);
  void on_freed(int pe, const SegmentFreed& freed);
  void on_released(int pe, const SegmentReleased& released);
  SegmentDescription describe_own(KnownSegment& segment, bool needs_key);
  void export_own(KnownSegment& segment);
  base::Status register_own(KnownSegment& segment);
  // Takes from a description how this PE reaches the segment.
  void take(KnownSegment& segment, int pe, const SegmentDescription& description);
  void map(KnownSegment& segment, const SegmentDescription& description);
  void import(KnownSegment& segment, const SegmentDescription& description);
  const std::uint8_t* states_of(int pe, const SegmentDescription& description, KnownSegment& segment);

  runtime::Runtime& runtime_;
  const SegmentHandlers handlers_;
  SegmentCache& cache_;
  const int pe_;
  std::shared_ptr<SegmentOwner*> self_;  // what the handles of own segments share; null when closed
  bool maps_ = true;
  bool has_other_hosts_ = false;  // some PEs of the job are on other hosts
  bool closed_ = false;
  std::uint32_t last_number_ = 0;
  SegmentStates own_states_;
  SharedParts shared_parts_;
  MappedFiles mapped_files_;
  std::unordered_map<int, SegmentStates> states_;  // of other PEs; empty ones could not be mapped
  std::unordered_map<std::uint64_t, std::unique_ptr<KnownSegment>> segments_;  // by key_of()
  // The last one that lookup() found: of this PE, and of others.
  struct Found {
    std::uint64_t key = 0;
    KnownSegment* segment = nullptr;
  };
  Found& last_found(const GlobalAddress& address) { return last_found_[address.pe() == pe_ ? 0 : 1]; }
  std::array<Found, 2> last_found_;
};

}  // namespace weft::rma
