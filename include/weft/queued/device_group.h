// weft::queued::DeviceGroup: collectives of device arrays among PEs of one host, queued on streams.
//
//   pgas::DeviceGroup group = co_await world.device_group(weft::device(runtime, memory::Kind::kCuda));
//   group.all_reduce(gradient, gradient, n, memory::ElementType::kFloat32, Reducer::kSum, stream);
//   co_await group.over();
//
// A call queues the operation behind the work of the stream and returns. Work that is queued on the stream later sees the result. No
// CPU takes part until over() is awaited. If a graph is being captured from the stream, each launch of the graph does the operation.
//
// All members queue the same operations, with the same sizes and types, in the same order, which graphs continue. The operations of
// a group run one after another: they are on one stream of the member, or the program orders its streams by events. Sizes that
// differ give undefined elements. If a member leaves an operation out, the streams of the others wait, and so does quiescence.
//
// Buffers are memory of the group's device. They stay valid until the stream has done the operation. The elements of reductions
// are combined by rank, from left to right, so all members and all runs get the same bits. `num_elements` counts those of the
// member's input. Input and output do not overlap, except where "in place" is said.
//
// Errors: a call throws Error and queues nothing:
//   kInvalidArgument   memory of another device or of the host, memory that overlaps, an address that is not aligned to its elements,
//                      a number of elements that is no multiple of the members, a reduction of bytes, a Reducer that
//                      is not a sum, product, min or max
//   kOutOfRange        memory that leaves its allocation, a rank that the group does not have
//   kClosed            the group has been closed, or the job has ended
//
// A handle: copies are cheap and mean the same group. An empty one may be tested and assigned, nothing else. Its memory stays until the streams are done and no member uses it. Graphs that
// contain operations of it need a handle, or the group to be open, as long as they are launched. Threads: the PE's.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "weft/base/pup.h"
#include "weft/memory/buffer.h"
#include "weft/memory/element_type.h"
#include "weft/runtime/future.h"
#include "weft/runtime/reduction.h"

namespace weft::queued {

class GroupState;

struct DeviceGroupOptions {
  // Data above 64 KiB moves in pieces of this size, the same on all members. A member allocates
  // two such places, and 1 MiB. Without a value it is 32 MiB on GPUs, and 4 MiB on emulated devices. An all-reduce of 64 MiB between two H200: 636 us with 4 MiB, 342 with
  // 16, 297 with 32.
  std::optional<std::size_t> place_bytes;
};

class DeviceGroup {
 public:
  // No group.
  DeviceGroup() = default;
  explicit operator bool() const { return state_ != nullptr; }

  int rank() const;
  int size() const;
  memory::Place device() const;

  // The elements of `root`, on all members.
  void broadcast(void* data, std::size_t num_elements, memory::ElementType type, int root,
                 memory::StreamHandle stream) const;
  // `out` is used on `root` alone. In place: in == out.
  void reduce(const void* in, void* out, std::size_t num_elements, memory::ElementType type,
              runtime::Reducer reducer, int root, memory::StreamHandle stream) const;
  // In place: in == out.
  void all_reduce(const void* in, void* out, std::size_t num_elements, memory::ElementType type,
                  runtime::Reducer reducer, memory::StreamHandle stream) const;
  // `out` gets num_elements of each member, by rank. In place: `in` is the member's own part of `out`.
  void all_gather(const void* in, void* out, std::size_t num_elements, memory::ElementType type,
                  memory::StreamHandle stream) const;
  // `in` has a part for each member, by rank; `out` gets the own parts of all, combined. In place: `out` is the first part of `in`, or
  // the own one.
  void reduce_scatter(const void* in, void* out, std::size_t num_elements, memory::ElementType type,
                      runtime::Reducer reducer, memory::StreamHandle stream) const;
  // `in` has a part for each member, by rank, and `out` gets the own part of each member. In place: in == out.
  void all_to_all(const void* in, void* out, std::size_t num_elements, memory::ElementType type,
                  memory::StreamHandle stream) const;

  // Work that is queued on the stream later begins when the streams of all members have come here.
  void barrier(memory::StreamHandle stream) const;

  // Ready when what has been queued on streams is over, with its first failure. Operations in graphs do not count: await the streams
  // on which the graphs are launched.
  runtime::Future<> over() const;
  // `keeper` stays until what has been queued on the stream is over. While a graph is captured it is dropped.
  void keep(std::shared_ptr<void> keeper, memory::StreamHandle stream) const;
  // Frees the memory of the group. Ready when all members have closed it and their streams have done its operations. REQUIRES: graphs
  // with operations of the group are not launched any more.
  runtime::Future<> close() const;

  // A group cannot travel: this throws Error(kUnsupported).
  void pup(base::Pup& p);

  explicit DeviceGroup(std::shared_ptr<GroupState> state) : state_(std::move(state)) {}
  const std::shared_ptr<GroupState>& state() const { return state_; }

 private:
  std::shared_ptr<GroupState> state_;
};

}  // namespace weft::queued
