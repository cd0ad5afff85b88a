// Copies of runs by the CPU or by the device that has them, and packing for copies between two places.
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/base/error.h"

#include "memory/memory.h"
#include "rma/copy/batch.h"
#include "rma/copy/copies.h"
#include "runtime/message/receive_buffer_pool.h"

namespace weft::rma {

using runtime::Task;

namespace {

base::Status queue_groups(memory::KindBackend& kind, std::span<const Run> runs, const memory::Buffer& from,
                          const memory::Buffer& to) {
  for (const RowGroup& group : row_groups(runs)) {
    const Run& first = runs[group.first];
    const memory::StridedRows source{static_cast<std::byte*>(from.data) + first.from_bytes,
                                     group.from_stride};
    const memory::StridedRows target{static_cast<std::byte*>(to.data) + first.to_bytes, group.to_stride};
    base::Status queued =
        kind.copy_rows_async(target, source, from.place, first.size_bytes, group.count, nullptr);
    if (queued.failed()) return queued;
  }
  return {};
}

}  // namespace

Task<> Copies::copy_at_place(std::span<const Run> runs, memory::Buffer from, memory::Buffer to) {
  if (from.place.is_host()) {
    Task<> copied = copy_host(runs, from, to);
    co_await std::move(copied);
  } else {
    Task<> copied = copy_device(runs, from, to);
    co_await std::move(copied);
  }
}

Task<> Copies::copy_host(std::span<const Run> runs, memory::Buffer from, memory::Buffer to) {
  std::uint64_t left = kAtOnceBytes;
  for (const Run& run : runs) {
    for (std::uint64_t done = 0; done < run.size_bytes;) {
      const std::uint64_t size_bytes = std::min(left, run.size_bytes - done);
      const auto offset = static_cast<std::int64_t>(done);
      std::memmove(part_of(to, run.to_bytes + offset, 0).data, part_of(from, run.from_bytes + offset, 0).data,
                   size_bytes);
      done += size_bytes;
      left -= size_bytes;
      if (left > 0) continue;
      co_await runtime::yield_now(runtime_);
      left = kAtOnceBytes;
    }
  }
}

// On the device's own stream.
Task<> Copies::copy_device(std::span<const Run> runs, memory::Buffer from, memory::Buffer to) {
  memory::KindBackend& kind = *runtime_.memory().backend(from.place.kind);
  const base::Status queued = queue_groups(kind, runs, from, to);
  // Copies that were queued before a failure still use the memory: wait for them too.
  const base::Result<memory::EventHandle> event = kind.record(nullptr, from.place.device);
  if (!event.ok()) base::throw_status(event.status());
  Batch batch(runtime_);
  batch.start([&](base::Completion* completion) {
    return runtime_.memory().when_event_done(from.place, event.value(), completion);
  });
  co_await batch;
  kind.release_event(event.value());
  base::check(queued);
  base::check(batch.status());
}

Copies::Block Copies::make_block(std::span<const Run> piece, End other_end, memory::Place place) {
  Block block;
  // To pack costs a copy, which half as many transfers are worth.
  if (num_joined(piece, other_end) > piece.size() / 2) return block;
  const std::uint64_t size_bytes = total_bytes(piece);
  auto memory = runtime_.receive_buffer_pool().allocate(size_bytes, place);
  if (!memory.ok()) return block;
  block.memory = std::move(*memory);
  block.size_bytes = size_bytes;
  block.runs = other_end == End::kTarget ? unpacking_runs(piece) : packing_runs(piece);
  return block;
}

Task<> Copies::copy_packed(const Copy& copy, memory::Buffer from, memory::Buffer to) {
  const std::vector<Run> packing = packing_runs(copy.runs);
  const std::vector<Run> unpacking = unpacking_runs(copy.runs);
  const std::uint64_t size_bytes = total_bytes(copy.runs);
  runtime::Attachment source_block;
  runtime::Attachment target_block;
  memory::Buffer source = part_of(from, packing.front().from_bytes, size_bytes);
  memory::Buffer target = part_of(to, unpacking.front().to_bytes, size_bytes);
  if (unpacking.size() > 1) {
    auto block = runtime_.receive_buffer_pool().allocate(size_bytes, to.place);
    if (!block.ok()) base::throw_status(block.status());
    target_block = std::move(*block);
    target = part_of(target_block.buffer(), 0, size_bytes);
  }
  if (packing.size() > 1) {
    auto block = runtime_.receive_buffer_pool().allocate(size_bytes, from.place);
    if (!block.ok()) base::throw_status(block.status());
    source_block = std::move(*block);
    source = part_of(source_block.buffer(), 0, size_bytes);
    Task<> packed = copy_at_place(packing, from, source);
    co_await std::move(packed);
  }
  Batch batch(runtime_);
  batch.start(
      [&](base::Completion* completion) { return runtime_.memory().copy(target, source, completion); });
  co_await batch;
  base::check(batch.status());
  if (unpacking.size() > 1) {
    Task<> unpacked = copy_at_place(unpacking, target, to);
    co_await std::move(unpacked);
  }
}

}  // namespace weft::rma
