// GroupState: what a member of a DeviceGroup has, and the steps of which its operations consist.
//
// Memory of a member, which the others have mapped ("rooms" and "words"):
//
//   rooms   lane kCombining: a ring of 2 places | lane kGathering: a ring of 2 places | large place 0 | large place 1
//   words   arrived[lane][member] | count[lane] | reader count[member]
//
// A *publish* is one step: it copies the member's data into a place of its own room, tells all peers (writes its number + 1 to their
// `arrived` word of this member), and waits for the same of all. Its number n is the lane's count, on the device. Behind it the
// rooms of all members have the data of number n.
//
// Why a ring of two places is enough: place n % 2 is written in publish n, whose member has seen all arrivals of n - 1. A peer's
// arrival n - 1 says that the peer's stream has come to its publish n - 1, so it has read the place of n - 2 before.
//
// A step behind a publish that reads a ring has a count of its own, which all operations of the lane raise once, so it has the
// publish's number. Hence two lanes: those of kGathering raise the reader counts, those of kCombining read within the publish.
//
// Large data has fixed places, and publishes without data of lane kLarge are barriers. Between operations holds: place 0 is free, and
// place 1 is free behind the next barrier.
//
// Threads: the PE's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/rma/global_memory.h"
#include "weft/rma/segment.h"
#include "weft/runtime/future.h"
#include "weft/runtime/runtime.h"

#include "memory/kinds/kind.h"
#include "queued/stream_watch.h"

namespace weft::queued {

enum class Lane : std::uint8_t { kCombining, kGathering, kLarge };
inline constexpr std::size_t kNumLanes = 3;

// Sizes of a group's memory, the same on all members.
class GroupLayout {
 public:
  // A publish by one step, which is one block of threads, is for data up to this size. An all-reduce of 64 KiB between two
  // H200, in a graph: 9.2 us, and 9.6 us by the way of large data, which has four launches.
  static constexpr std::size_t kRingPlaceBytes = 64 << 10;
  static constexpr std::size_t kAlignment = 256;
  static constexpr std::size_t kMostPlaceBytes = std::size_t{1} << 30;
  static constexpr std::size_t kNumWords = (kNumLanes + 2) * memory::kMaxStepPeers;
  static constexpr std::size_t kWordBytes = kNumWords * sizeof(std::uint32_t);

  // REQUIRES: 0 < place_bytes <= kMostPlaceBytes.
  explicit GroupLayout(std::size_t place_bytes)
      : large_bytes_((place_bytes + kAlignment - 1) / kAlignment * kAlignment),
        ring_bytes_(large_bytes_ < kRingPlaceBytes ? large_bytes_ : kRingPlaceBytes) {}

  std::size_t large_bytes() const { return large_bytes_; }
  std::size_t ring_bytes() const { return ring_bytes_; }
  // A member combines all if it reads no more than this from its peers, else a slice. Two H200 move 1 MiB in 3 us. Where slices begin
  // to be faster is not measured. Small places have slices earlier, for tests.
  std::size_t most_whole_bytes() const { return std::min(std::size_t{1} << 20, 2 * large_bytes_); }
  std::size_t room_bytes() const { return 4 * ring_bytes_ + 2 * large_bytes_; }
  // REQUIRES: a lane with a ring.
  std::size_t ring_offset(Lane lane) const { return 2 * ring_bytes_ * static_cast<std::size_t>(lane); }
  std::size_t large_offset(std::size_t place) const { return 4 * ring_bytes_ + place * large_bytes_; }
  static std::size_t arrived_word(Lane lane, int rank) {
    return static_cast<std::size_t>(lane) * memory::kMaxStepPeers + static_cast<std::size_t>(rank);
  }
  static std::size_t count_word(Lane lane) {
    return kNumLanes * memory::kMaxStepPeers + static_cast<std::size_t>(lane);
  }
  static std::size_t reader_word(int rank) {
    return (kNumLanes + 1) * memory::kMaxStepPeers + static_cast<std::size_t>(rank);
  }

 private:
  std::size_t large_bytes_;
  std::size_t ring_bytes_;
};

// How a group is made, see make_group.h.
struct GroupMember {
  std::vector<int> pes;  // by rank
  int rank = 0;
  memory::Place device;
  // Notes what is queued, and other work of the owner. Null: one of the group's own.
  std::shared_ptr<StreamWatch> watch = nullptr;
};

class GroupState final : public rma::EndListener, public std::enable_shared_from_this<GroupState> {
 public:
  GroupState(runtime::Runtime& runtime, GroupMember member, std::size_t place_bytes);
  GroupState(const GroupState&) = delete;
  GroupState& operator=(const GroupState&) = delete;

  int rank() const { return member_.rank; }
  int size() const { return static_cast<int>(member_.pes.size()); }
  int pe_of(int rank) const { return member_.pes[static_cast<std::size_t>(rank)]; }
  memory::Place device() const { return member_.device; }
  const GroupLayout& layout() const { return layout_; }
  runtime::Runtime& runtime() const { return runtime_; }
  memory::KindBackend& kind() const { return kind_; }

  // --- Making it
  // Makes the own rooms. Throws Error.
  void open(rma::GlobalMemory& global);
  // Zeros, see make_words().
  void set_own_words(rma::Segment words) { words_ = std::move(words); }
  rma::GlobalAddress own_rooms() const { return rooms_.address(); }
  rma::GlobalAddress own_words() const { return words_.address(); }
  // Where this device reaches the memory of a member; each rank once. REQUIRES: both are memory of the group's kind.
  void set_member(int rank, rma::GlobalMemory::HeldMemory rooms, rma::GlobalMemory::HeldMemory words);

  // --- Memory
  std::byte* ring(int rank, Lane lane) const { return rooms_of(rank) + layout_.ring_offset(lane); }
  std::byte* large(int rank, std::size_t place) const { return rooms_of(rank) + layout_.large_offset(place); }

  // --- What a stream does. All throw Error if the kind refuses.
  // A publish of this lane, for queue(). Without bytes it is a barrier.
  memory::DeviceStep publish(Lane lane, const void* from, std::size_t size_bytes) const;
  // A step behind a publish of kGathering that copies out of that member's ring, at this offset of the place. Each publish has one
  // for each peer; one without bytes copies nothing.
  memory::DeviceStep read(int from_rank, std::size_t offset, void* to, std::size_t size_bytes) const;
  void queue(const memory::DeviceStep& step, memory::StreamHandle stream) { queue({&step, 1}, stream); }
  // One after the other.
  void queue(std::span<const memory::DeviceStep> steps, memory::StreamHandle stream);
  void reduce(const memory::DeviceReduction& reduction, memory::StreamHandle stream);
  void barrier(memory::StreamHandle stream) { queue(publish(Lane::kLarge, nullptr, 0), stream); }
  // For queue(), if it is small enough for a step.
  static memory::DeviceStep copy_step(void* to, const void* from, std::size_t size_bytes);
  // All at once, see GroupCopies.
  void copy(std::span<const memory::MessageEnd> copies, memory::StreamHandle stream);
  // How much has been queued by these.
  std::uint64_t num_queued() const { return num_queued_; }

  // --- Life
  // Throws Error(kClosed).
  void expect_open() const;
  // What has been queued on the stream uses the group, and `keeper` if there is one.
  void note(memory::StreamHandle stream, std::shared_ptr<void> keeper = nullptr);
  runtime::Future<> over();
  runtime::Future<> close();
  // Forgets all memory.
  void job_has_ended() override;

 private:
  struct Reached {
    rma::GlobalMemory::HeldMemory rooms;
    rma::GlobalMemory::HeldMemory words;
  };
  static runtime::Task<> run_close(std::shared_ptr<GroupState> state, runtime::Future<> closed);

  std::byte* rooms_of(int rank) const {
    return static_cast<std::byte*>(reached_[static_cast<std::size_t>(rank)].rooms.memory.data);
  }
  std::uint32_t* word(int rank, std::size_t number) const {
    return static_cast<std::uint32_t*>(reached_[static_cast<std::size_t>(rank)].words.memory.data) + number;
  }

  runtime::Runtime& runtime_;
  const GroupMember member_;
  const GroupLayout layout_;
  memory::KindBackend& kind_;
  bool is_open_ = true;
  std::uint64_t num_queued_ = 0;
  rma::Segment rooms_;
  rma::Segment words_;
  std::vector<Reached> reached_;  // by rank, the own memory too
  std::shared_ptr<StreamWatch> watch_;
};

// Copies that a stream does side by side, by kernels: a copy engine starts late between kernels. Out of the rooms of two H200, in a graph,
// 4 MiB take 18.9 us, and 27.2 us by the engine.
class GroupCopies {
 public:
  GroupCopies(GroupState& group, memory::StreamHandle stream) : group_(group), stream_(stream) {}

  // Nothing if both are the same, or empty. Throws Error.
  void add(std::byte* to, const std::byte* from, std::size_t size_bytes);
  // Queues what has been added. REQUIRES: behind the last add().
  void flush();

 private:
  GroupState& group_;
  memory::StreamHandle stream_;
  std::size_t count_ = 0;
  std::array<memory::MessageEnd, memory::kMaxMessageEnds> copies_;
};

}  // namespace weft::queued
