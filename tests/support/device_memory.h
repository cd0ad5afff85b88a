// Memory whose bytes a test can read: host memory, and emulated memory through its device's view.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "memory/kinds/emulated/emulated_backend.h"
#include "memory/memory.h"
#include "tests/support/pattern.h"

namespace weft::testing {

inline memory::EmulatedBackend& emulated(memory::Memory& memory) {
  return dynamic_cast<memory::EmulatedBackend&>(*memory.backend(memory::Kind::kEmulated));
}

// Where the CPU finds the bytes of `buffer`.
inline std::uint8_t* view(memory::Memory& memory, const memory::Buffer& buffer) {
  if (buffer.place.is_host() || buffer.size_bytes == 0) return static_cast<std::uint8_t*>(buffer.data);
  auto found = emulated(memory).device_view(buffer.data, buffer.size_bytes);
  if (!found.ok()) throw std::runtime_error(found.status().to_string());
  return static_cast<std::uint8_t*>(*found);
}

inline std::vector<std::uint8_t> contents(memory::Memory& memory, const memory::Buffer& buffer) {
  const std::uint8_t* bytes = view(memory, buffer);
  return {bytes, bytes + buffer.size_bytes};
}

// An allocation that frees itself; its bytes count up from `first`.
class TestMemory {
 public:
  TestMemory(memory::Memory& memory, memory::Place place, std::size_t size_bytes, std::uint8_t first = 0)
      : memory_(&memory) {
    auto allocated = memory.allocate(size_bytes, place);
    if (!allocated.ok()) throw std::runtime_error(allocated.status().to_string());
    buffer_ = *allocated;
    constexpr std::size_t kPeriod = 251;
    expected_.resize(size_bytes);
    for (std::size_t i = 0; i < std::min(size_bytes, kPeriod); ++i)
      expected_[i] = static_cast<std::uint8_t>(first + i);
    test_support::repeat_bytes(expected_.data(), kPeriod, size_bytes);
    if (size_bytes > 0) std::memcpy(view(memory, buffer_), expected_.data(), size_bytes);
  }
  TestMemory(TestMemory&& other) noexcept
      : memory_(other.memory_),
        buffer_(std::exchange(other.buffer_, {})),
        expected_(std::move(other.expected_)) {}
  ~TestMemory() { free(); }

  void free() { EXPECT_TRUE(memory_->deallocate(std::exchange(buffer_, {})).ok()); }
  memory::Buffer& buffer() { return buffer_; }
  // The bytes that it was filled with.
  const std::vector<std::uint8_t>& filled() const { return expected_; }
  std::vector<std::uint8_t> now() const { return contents(*memory_, buffer_); }

 private:
  memory::Memory* memory_;
  memory::Buffer buffer_;
  std::vector<std::uint8_t> expected_;
};

}  // namespace weft::testing
