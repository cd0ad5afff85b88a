#include "models/mpi/p2p/device_elements.h"

#include <memory>
#include <utility>

#include "memory/memory.h"
#include "runtime/message/receive_buffer_pool.h"

namespace weft::mpi {

using base::Result;
using base::Status;
using runtime::Attachment;

namespace {

// A block and the stream on which it is filled. The block is released first: that waits for the stream's work.
struct FilledBlock {
  DeviceStreams::Lease stream;
  Attachment block;
};

}  // namespace

Result<Attachment> DeviceElements::allocate(std::size_t size_bytes, const DataView& view) {
  return messenger_.receive_buffer_pool().allocate(size_bytes, view.place);
}

Result<Attachment> DeviceElements::pack(const DataView& view) {
  Result<Attachment> block = allocate(view.size_bytes, view);
  if (!block.ok()) return block.status();
  Result<DeviceStreams::Lease> stream = streams_.take(view.place, view.stream);
  if (!stream.ok()) return stream.status();
  auto filled = std::make_unique<FilledBlock>(std::move(stream).value(), std::move(block).value());
  const memory::StreamHandle handle = filled->stream.handle();
  filled->block.use_on(handle);
  const memory::Buffer buffer = filled->block.buffer();
  const Status queued =
      copy_runs(Direction::kPack, view, static_cast<std::byte*>(buffer.data), view.size_bytes, handle);
  if (queued.failed()) return queued;
  return Attachment(
      buffer, [](void* owner, const memory::Buffer&) { delete static_cast<FilledBlock*>(owner); },
      filled.release());
}

Result<DeviceStreams::Lease> DeviceElements::unpack(const DataView& view, const std::byte* packed,
                                                    std::size_t size_bytes) {
  Result<DeviceStreams::Lease> stream = streams_.take(view.place, view.stream);
  if (!stream.ok()) return stream;
  const Status queued =
      copy_runs(Direction::kUnpack, view, const_cast<std::byte*>(packed), size_bytes, stream->handle());
  if (queued.failed()) return queued;
  return stream;
}

Status DeviceElements::copy_runs(Direction direction, const DataView& view, std::byte* packed,
                                 std::size_t size_bytes, memory::StreamHandle stream) {
  memory::KindBackend& kind = *messenger_.memory().backend(view.place.kind);
  Status status;
  view.layout->visit_runs(view.data, view.count, size_bytes, [&](const EvenRuns& runs) {
    if (status.failed()) return;
    const memory::StridedRows elements{reinterpret_cast<std::byte*>(runs.address), runs.stride};
    const memory::StridedRows dense{packed, static_cast<std::ptrdiff_t>(runs.size_bytes)};
    const bool packs = direction == Direction::kPack;
    status = kind.copy_rows_async(packs ? dense : elements, packs ? elements : dense, view.place,
                                  runs.size_bytes, runs.count, stream);
    packed += runs.size_bytes * runs.count;
  });
  return status;
}

}  // namespace weft::mpi
