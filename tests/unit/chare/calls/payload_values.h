// What is in payloads and in the memory that they are sent from, whichever kind it is.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "weft/chare/payload.h"
#include "weft/runtime/runtime.h"

#include "tests/support/device_memory.h"

namespace weft::chare {

template <class T>
std::span<T> as(const memory::Buffer& buffer) {
  return {static_cast<T*>(buffer.data), buffer.size_bytes / sizeof(T)};
}

// The elements of a payload where the CPU finds them.
template <class T>
std::span<T> reachable(runtime::Runtime& runtime, const Payload<T>& payload) {
  memory::Buffer buffer{payload.data(), payload.size() * sizeof(T), payload.place(), nullptr};
  return {reinterpret_cast<T*>(testing::view(runtime.memory(), buffer)), payload.size()};
}
template <class T>
std::vector<T> values_of(runtime::Runtime& runtime, const Payload<T>& payload) {
  if (payload.size() == 0) return {};
  std::span<T> found = reachable(runtime, payload);
  return {found.begin(), found.end()};
}

inline void set_values(memory::Memory& memory, testing::TestMemory& given,
                       const std::vector<double>& values) {
  if (values.empty()) return;
  std::memcpy(testing::view(memory, given.buffer()), values.data(), values.size() * sizeof(double));
}
inline testing::TestMemory doubles_in(memory::Memory& memory, memory::Place place,
                                      const std::vector<double>& values) {
  testing::TestMemory made(memory, place, values.size() * sizeof(double));
  set_values(memory, made, values);
  return made;
}

}  // namespace weft::chare
