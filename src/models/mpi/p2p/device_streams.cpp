#include "models/mpi/p2p/device_streams.h"

#include <algorithm>

namespace weft::mpi {

using base::Result;
using base::Status;

DeviceStreams::~DeviceStreams() {
  for (const Stream& stream : idle_)
    static_cast<void>(memory_.backend(stream.place.kind)->destroy_stream(stream.handle));
}

Result<DeviceStreams::Lease> DeviceStreams::find_or_create(memory::Place place) {
  const auto found = std::ranges::find(idle_, place, &Stream::place);
  if (found != idle_.end()) {
    const Stream stream = *found;
    idle_.erase(found);
    return Lease(*this, stream.place, stream.handle);
  }
  Result<memory::StreamHandle> created = memory_.backend(place.kind)->create_stream(place.device);
  if (!created.ok()) return created.status();
  return Lease(*this, place, *created);
}

Result<DeviceStreams::Lease> DeviceStreams::take(memory::Place place, memory::StreamHandle after) {
  Result<Lease> lease = find_or_create(place);
  if (!lease.ok() || after == nullptr) return lease;
  memory::KindBackend& kind = *memory_.backend(place.kind);
  Result<memory::EventHandle> event = kind.record(after, place.device);
  if (!event.ok()) return event.status();
  const Status waits = kind.stream_wait(lease->handle(), place.device, *event);
  kind.release_event(*event);
  if (waits.failed()) return waits;
  return lease;
}

}  // namespace weft::mpi
