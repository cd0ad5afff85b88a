// What the tests of Memory share.
#pragma once

#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/cuda/cuda_options.h"
#include "memory/kinds/emulated/emulated_backend.h"
#include "memory/memory.h"
#include "tests/unit/memory/outcome.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {

using base::Status;
using base::StatusCode;

// The kinds of a machine without a GPU; what a test makes is given back at its end.
class MemoryTest : public ::testing::Test {
 protected:
  static MemoryOptions without_cuda() {
    MemoryOptions options;
    options.of<CudaOptions>().driver = "";
    return options;
  }

  EmulatedBackend& emulated() { return static_cast<EmulatedBackend&>(*memory.backend(Kind::kEmulated)); }

  Buffer make(std::size_t size_bytes, Place place) {
    base::Result<Buffer> buffer = memory.allocate(size_bytes, place);
    EXPECT_TRUE(buffer.ok()) << buffer.status().to_string();
    owned.push_back(*buffer);
    return *buffer;
  }

  void move(const Buffer& destination, const ConstBuffer& source) {
    Outcome outcome;
    ASSERT_TRUE(memory.copy(destination, source, &outcome).is_pending());
    poll_until_idle(memory);
    ASSERT_EQ(outcome.calls, 1);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.to_string();
    ASSERT_EQ(outcome.size_bytes, source.size_bytes);
  }

  void fill(const Buffer& buffer, const std::vector<unsigned char>& bytes) {
    move(buffer, ConstBuffer(bytes.data(), bytes.size()));
  }

  std::vector<unsigned char> read(const Buffer& buffer) {
    std::vector<unsigned char> bytes(buffer.size_bytes);
    move(host_buffer(bytes), buffer);
    return bytes;
  }

  void TearDown() override {
    memory.close();
    for (const Buffer& buffer : owned) EXPECT_TRUE(memory.deallocate(buffer).ok());
  }

  Memory memory{without_cuda()};
  std::vector<Buffer> owned;
};

}  // namespace weft::memory
