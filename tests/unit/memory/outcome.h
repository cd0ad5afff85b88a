// What became of one operation: how often it completed, and with what.
#pragma once

#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "memory/memory.h"

namespace weft::memory {

struct Outcome : base::Completion {
  Outcome() : base::Completion(&Outcome::record) {}

  static void record(base::Completion* self, base::Status status, std::size_t size_bytes) {
    auto* outcome = static_cast<Outcome*>(self);
    ++outcome->calls;
    outcome->status = std::move(status);
    outcome->size_bytes = size_bytes;
  }

  int calls = 0;
  base::Status status = base::Status::pending();
  std::size_t size_bytes = 0;
};

// Far more polls than anything in the tests needs: a hang becomes a failure.
inline constexpr int kManyPolls = 100000;

inline void poll_until_idle(Memory& memory) {
  for (int i = 0; i < kManyPolls && memory.has_pending(); ++i) memory.progress();
  EXPECT_FALSE(memory.has_pending()) << "still pending after " << kManyPolls << " polls";
}

inline std::vector<unsigned char> pattern(std::size_t size_bytes, unsigned seed) {
  std::vector<unsigned char> bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<unsigned char>(seed + i * 7 + i / 251);
  return bytes;
}

template <class T>
Buffer host_buffer(std::vector<T>& values) {
  return Buffer{values.data(), values.size() * sizeof(T), Place{}, nullptr};
}

}  // namespace weft::memory
