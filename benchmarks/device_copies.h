// Copies by a device's own calls, for programs that measure without Weft's runtime.
#pragma once

#include <cstddef>
#include <utility>

#include "benchmarks/measuring.h"
#include "memory/memory.h"

namespace weft::benchmarks {

inline void expect_ok(const base::Status& status) {
  if (status.failed()) die(status.to_string());
}

template <class T>
T value_of(base::Result<T> result) {
  expect_ok(result.status());
  return std::move(result).value();
}

// Until all work that is queued on the device's own stream is done.
inline void wait_for(memory::KindBackend& backend, int device) {
  memory::EventHandle event = value_of(backend.record(nullptr, device));
  base::Status status;
  do {
    status = backend.query(event);
  } while (status.is_pending());
  expect_ok(status);
  backend.release_event(event);
}

}  // namespace weft::benchmarks
