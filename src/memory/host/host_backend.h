// Ordinary host memory. Its copies are made by the CPU when they are polled for, so that host code follows
// the same rules as device code: nothing is done before its completion says so.
#pragma once

#include "memory/kind.h"
#include "memory/software_streams.h"

namespace weft::memory {

class HostBackend final : public KindBackend {
 public:
  HostBackend() : streams_(Kind::kHost, 1) {}

  Kind kind() const override { return Kind::kHost; }
  int num_devices() const override { return 1; }
  std::string device_name(int) const override { return "host memory"; }
  bool cpu_accessible() const override { return true; }

  base::Result<void*> allocate(std::size_t size_bytes, int device) override;
  base::Status deallocate(void* data) override;
  // Host memory is what no device kind knows; its allocations are not tracked.
  std::optional<Allocation> find_allocation(const void*) override { return std::nullopt; }
  bool is_current(const Allocation&, const void*) override { return false; }

  base::Result<StreamHandle> create_stream(int device) override { return streams_.create(device); }
  base::Status destroy_stream(StreamHandle stream) override { return streams_.destroy(stream); }
  base::Status copy_async(void* destination, Place destination_place, const void* source, Place source_place,
                          std::size_t size_bytes, StreamHandle stream) override;
  base::Result<void*> allocate_host(std::size_t size_bytes, int) override { return allocate(size_bytes, 0); }
  void deallocate_host(void* data) override;
  bool host_copy_is_async(const void*, std::size_t) override { return true; }

  base::Result<EventHandle> record(StreamHandle stream, int device) override {
    return streams_.record(stream, device);
  }
  base::Status query(EventHandle event) override { return streams_.query(event); }
  base::Status stream_wait(StreamHandle stream, int device, EventHandle event) override {
    return streams_.wait(stream, device, event);
  }
  void release_event(EventHandle event) override { streams_.release(event); }

 private:
  SoftwareStreams streams_;
};

}  // namespace weft::memory
