// What tests of steps on real GPUs share: words and small sums, and graphs that are captured.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

#include "tests/gpu/gpu_test.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {

// The driver's calls for graphs.
class Graphs {
 public:
  Graphs() {
    void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
    find(driver, "cuStreamBeginCapture_v2", begin_);
    find(driver, "cuStreamEndCapture", end_);
    find(driver, "cuGraphInstantiateWithFlags", instantiate_);
    find(driver, "cuGraphLaunch", launch_);
    find(driver, "cuGraphExecDestroy", destroy_executable_);
    find(driver, "cuGraphDestroy", destroy_);
  }

  bool are_there() const {
    return begin_ != nullptr && end_ != nullptr && instantiate_ != nullptr && launch_ != nullptr &&
           destroy_executable_ != nullptr && destroy_ != nullptr;
  }
  // What `body` queues on the stream, for launch(). Any call that waits for the device would break the capture.
  template <class Body>
  void* capture(StreamHandle stream, Body body) {
    constexpr int kGlobal = 0;
    void* graph = nullptr;
    void* executable = nullptr;
    EXPECT_EQ(begin_(stream, kGlobal), 0);
    body();
    EXPECT_EQ(end_(stream, &graph), 0);
    EXPECT_EQ(instantiate_(&executable, graph, 0), 0);
    EXPECT_EQ(destroy_(graph), 0);
    return executable;
  }
  int launch(void* executable, StreamHandle stream) { return launch_(executable, stream); }
  void destroy(void* executable) { EXPECT_EQ(destroy_executable_(executable), 0); }

 private:
  template <class Function>
  static void find(void* driver, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(driver == nullptr ? nullptr : ::dlsym(driver, name));
  }

  int (*begin_)(void*, int) = nullptr;
  int (*end_)(void*, void**) = nullptr;
  int (*instantiate_)(void**, void*, unsigned long long) = nullptr;
  int (*launch_)(void*, void*) = nullptr;
  int (*destroy_executable_)(void*) = nullptr;
  int (*destroy_)(void*) = nullptr;
};

class GpuStepTest : public GpuTest {
 protected:
  static std::uint32_t* word(const Buffer& buffer, std::size_t number) {
    return static_cast<std::uint32_t*>(buffer.data) + number;
  }
  static std::byte* bytes(const Buffer& buffer, std::size_t number) {
    return reinterpret_cast<std::byte*>(word(buffer, number));
  }
  std::vector<std::uint32_t> read(const Buffer& buffer) {
    std::vector<std::uint32_t> words(buffer.size_bytes / sizeof(std::uint32_t));
    move(host_buffer(words), buffer);
    return words;
  }
  static DeviceReduction sum(const Buffer& buffer, std::size_t into, std::size_t more) {
    DeviceReduction reduction;
    reduction.sources.add(bytes(buffer, into));
    reduction.sources.add(bytes(buffer, more));
    reduction.out = bytes(buffer, into);
    reduction.num_elements = 1;
    reduction.type = ElementType::kInt32;
    return reduction;
  }

  bool has_two_gpus() {
    return cuda().num_devices() >= 2 && cuda().can_access_peer(0, 1) && cuda().can_access_peer(1, 0);
  }
  void await(Place place, StreamHandle stream) {
    Outcome done;
    ASSERT_TRUE(memory.when_queued_done(place, stream, &done).is_pending());
    finish(done);
  }
};

}  // namespace weft::memory
