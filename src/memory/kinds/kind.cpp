#include "memory/kinds/kind.h"

#include <algorithm>

#include "base/format.h"

namespace weft::memory {

using base::Status;
using base::StatusCode;

namespace {

Status not_shareable(Kind kind) {
  return Status(StatusCode::kUnsupported,
                base::format("{} memory cannot be mapped by other processes", kind_name(kind)));
}

Status no_signals(Kind kind) {
  return Status(StatusCode::kUnsupported,
                base::format("streams of {} devices cannot signal one another: wait for the stream, and tell "
                             "the other PE by a message",
                             kind_name(kind)));
}

}  // namespace

int KindBackend::device_of(int local_rank) const { return local_rank % std::max(1, num_devices()); }

base::Result<std::vector<std::byte>> KindBackend::export_allocation(const void*) {
  return not_shareable(kind());
}

base::Result<Buffer> KindBackend::import_allocation(std::span<const std::byte>, int) {
  return not_shareable(kind());
}

Status KindBackend::release_import(void*) { return not_shareable(kind()); }

Status KindBackend::lock_host(void*, std::size_t, int) {
  return Status(StatusCode::kUnsupported,
                base::format("the pages of host memory cannot be locked for {} devices", kind_name(kind())));
}

Status KindBackend::copy_rows_async(StridedRows destination, StridedRows source, Place place,
                                    std::size_t row_bytes, std::size_t count, StreamHandle stream) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = static_cast<std::ptrdiff_t>(i);
    Status status = copy_async(destination.data + row * destination.stride, place,
                               source.data + row * source.stride, place, row_bytes, stream);
    if (status.failed()) return status;
  }
  return {};
}

Status KindBackend::queue_step(const DeviceStep&, Place, StreamHandle) { return no_signals(kind()); }

std::string KindBackend::wrong_label(std::uint64_t expected, std::uint64_t found) {
  return base::format(
      "a receive expects a message with the label {:#x} and finds {:#x}: a receive names another size or tag "
      "than its send",
      expected, found);
}

Status KindBackend::queue_steps(std::span<const DeviceStep> steps, Place place, StreamHandle stream) {
  for (const DeviceStep& step : steps)
    if (Status status = queue_step(step, place, stream); status.failed()) return status;
  return {};
}

Status KindBackend::queue_messages(std::span<const MessageEnd>, Place, StreamHandle) {
  return no_signals(kind());
}

Status KindBackend::queue_reduction(const DeviceReduction&, Place, StreamHandle) {
  return no_signals(kind());
}

Status KindBackend::queue_write(std::uint32_t* word, Place place, std::uint32_t value, StreamHandle stream) {
  DeviceStep step;
  step.signals.add({word, value});
  return queue_step(step, place, stream);
}

Status KindBackend::queue_wait(std::uint32_t* word, Place place, std::uint32_t value, StreamHandle stream) {
  DeviceStep step;
  step.before.add({word, value});
  return queue_step(step, place, stream);
}

base::Result<EventHandle> KindBackend::record_timed(StreamHandle, int) {
  return Status(StatusCode::kUnsupported,
                base::format("{} devices do not measure how long they work", kind_name(kind())));
}

Status KindBackend::elapsed(EventHandle, EventHandle, double&) { return record_timed(nullptr, 0).status(); }

Status KindBackend::with_current(int, const std::function<void()>& body) {
  body();
  return {};
}

}  // namespace weft::memory
