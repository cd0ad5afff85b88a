// What tests on real GPUs share: skipping loudly where there is none, memory and copies, and a stream that stays busy until told.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "memory/memory.h"
#include "tests/unit/memory/outcome.h"

namespace weft::memory {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const base::Status available = memory.availability(Kind::kCuda);
    if (available.ok()) return;
    const std::string why(available.message());
    if (std::getenv("WEFT_REQUIRE_GPU") != nullptr) FAIL() << "WEFT_REQUIRE_GPU is set, but: " << why;
    std::printf("SKIPPED: no GPU (%s)\n", why.c_str());
    GTEST_SKIP() << why;
  }

  void TearDown() override {
    memory.close();
    for (const Buffer& buffer : owned) EXPECT_TRUE(memory.deallocate(buffer).ok());
  }

  Buffer make(std::size_t size_bytes, Place place) {
    auto buffer = memory.allocate(size_bytes, place);
    EXPECT_TRUE(buffer.ok()) << buffer.status().to_string();
    owned.push_back(*buffer);
    return *buffer;
  }

  void finish(Outcome& outcome) {
    poll_until_idle();
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.to_string();
  }

  void move(const Buffer& destination, const ConstBuffer& source) {
    Outcome outcome;
    const base::Status started = memory.copy(destination, source, &outcome);
    ASSERT_TRUE(started.is_pending()) << started.to_string();
    finish(outcome);
  }

  KindBackend& cuda() { return *memory.backend(Kind::kCuda); }

  // Polls until `done()`; far more time than anything here needs, so that a hang is a failure with a place.
  template <class Predicate>
  void poll_until(Predicate done, const char* what) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < limit) memory.progress();
    EXPECT_TRUE(done()) << "20 s have passed and " << what << " is not done";
  }
  void poll_until_idle() {
    poll_until([this] { return !memory.has_pending(); }, "everything");
  }

  Memory memory;
  std::vector<Buffer> owned;
};

// Keeps a CUDA stream busy from block() until open(). A call that waits for the stream in between never
// returns, so "does not block" is tested by getting on at all.
class StreamGate {
 public:
  ~StreamGate() { open(); }

  void block(StreamHandle stream) {
    using LaunchHostFunction = int (*)(void*, void (*)(void*), void*);
    void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
    ASSERT_NE(driver, nullptr);
    const auto launch = reinterpret_cast<LaunchHostFunction>(::dlsym(driver, "cuLaunchHostFunc"));
    ASSERT_NE(launch, nullptr);
    auto* const shared = new std::shared_ptr<std::atomic<bool>>(open_);
    ASSERT_EQ(launch(stream, &StreamGate::wait, shared), 0);
  }
  void open() {
    open_->store(true);
    open_->notify_all();
  }

 private:
  static void wait(void* argument) {
    auto* const shared = static_cast<std::shared_ptr<std::atomic<bool>>*>(argument);
    (*shared)->wait(false);
    delete shared;
  }

  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace weft::memory
