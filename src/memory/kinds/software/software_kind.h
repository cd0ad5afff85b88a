// The base of kinds whose copies the CPU makes: software streams, and host copies that never block.
//
// Threads: one.
#pragma once

#include "memory/kinds/kind.h"
#include "memory/kinds/software/software_streams.h"

namespace weft::memory {

class SoftwareKind : public KindBackend {
 public:
  Kind kind() const final { return kind_; }
  int num_devices() const final { return num_devices_; }

  base::Result<StreamHandle> create_stream(int device) final { return streams_.create(device); }
  base::Status destroy_stream(StreamHandle stream) final { return streams_.destroy(stream); }
  bool host_copy_is_async(const void*, std::size_t) final { return true; }

  base::Result<EventHandle> record(StreamHandle stream, int device) final {
    return streams_.record(stream, device);
  }
  bool is_idle(StreamHandle stream, int device) final { return streams_.is_idle(stream, device); }
  base::Status query(EventHandle event) final { return streams_.query(event); }
  base::Status stream_wait(StreamHandle stream, int device, EventHandle event) final {
    return streams_.wait(stream, device, event);
  }
  bool is_capturing(StreamHandle stream, int device) final { return streams_.is_capturing(stream, device); }
  void release_event(EventHandle event) final { streams_.release(event); }
  base::Result<EventHandle> record_timed(StreamHandle stream, int device) final {
    return streams_.record_timed(stream, device);
  }
  base::Status elapsed(EventHandle begin, EventHandle end, double& seconds) final {
    return SoftwareStreams::elapsed(begin, end, seconds);
  }

 protected:
  SoftwareKind(Kind kind, int num_devices)
      : streams_(kind, num_devices), kind_(kind), num_devices_(num_devices) {}

  SoftwareStreams streams_;

 private:
  Kind kind_;
  int num_devices_;
};

}  // namespace weft::memory
