// Streams of emulated devices that stay busy for as long as a test wants.
#pragma once

#include <stdexcept>
#include <utility>

#include "memory/kinds/emulated/emulated_backend.h"

namespace weft::testing {

// A kernel that runs until `may_end` is set. `may_end` must outlive it.
inline memory::EmulatedBackend::Kernel until(const bool& may_end) {
  return [&may_end] { return may_end ? base::Status() : base::Status::pending(); };
}

// A new stream with `kernel` in it.
inline memory::StreamHandle stream_with(memory::EmulatedBackend& kind, int device,
                                        memory::EmulatedBackend::Kernel kernel) {
  const memory::StreamHandle stream = kind.create_stream(device).value();
  const base::Status status = kind.launch(stream, device, std::move(kernel));
  if (status.failed()) throw std::runtime_error(status.to_string());
  return stream;
}

// `buffer`, naming a new stream with `kernel` in it.
inline memory::Buffer behind(memory::EmulatedBackend& kind, memory::EmulatedBackend::Kernel kernel,
                             memory::Buffer buffer) {
  buffer.stream = stream_with(kind, buffer.place.device, std::move(kernel));
  return buffer;
}

}  // namespace weft::testing
