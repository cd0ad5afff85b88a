#include "weft/runtime/device/device.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

using memory::Kind;
using memory::Place;

const Place kEmulatedPlace{Kind::kEmulated, 1};

// What `body` comes to in a job of one PE; failures of the job are failures of the test.
void in_job(std::function<Task<>(Runtime&)> body) {
  testing::InProcessJob job(1);
  EXPECT_EQ(job.run(std::move(body)), "");
}

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(DeviceOf, IsThePesOwn) {
  testing::InProcessJob job(1);
  EXPECT_EQ(device_of(job.runtime(0), Kind::kEmulated), job.runtime(0).own_place(Kind::kEmulated));
  EXPECT_EQ(device_of(job.runtime(0), Kind::kHost), Place());
  if (job.memory(0).backend(Kind::kCuda) == nullptr) {
    EXPECT_NE(error_of([&] { static_cast<void>(device_of(job.runtime(0), Kind::kCuda)); }), "no error");
  }
}

TEST(DeviceArray, OwnsMemoryOfItsPlace) {
  in_job([](Runtime& runtime) -> Task<> {
    memory::Memory& memory = runtime.memory();
    DeviceArray<double> array(runtime, 10, kEmulatedPlace);
    EXPECT_EQ(array.size(), 10U);
    EXPECT_EQ(array.buffer().size_bytes, 80U);
    EXPECT_EQ(memory.place_of(array.data()), kEmulatedPlace);

    double* const address = array.data();
    DeviceArray<double> moved = std::move(array);
    EXPECT_EQ(moved.data(), address);
    EXPECT_EQ(array.data(), nullptr);  // NOLINT(bugprone-use-after-move): that it is empty is the point
    moved = DeviceArray<double>();
    EXPECT_EQ(memory.place_of(address), Place()) << "given back";

    EXPECT_EQ(DeviceArray<double>(runtime, 0, kEmulatedPlace).data(), nullptr);
    EXPECT_EQ(error_of([&] { DeviceArray<int>(runtime, 1, {Kind::kEmulated, 9}); }),
              "there is no emulated:9: this process has 2 emulated devices");
    co_return;
  });
}

TEST(DeviceArray, StagingIsHostMemory) {
  in_job([](Runtime& runtime) -> Task<> {
    for (Place device : {kEmulatedPlace, Place()}) {
      auto array = DeviceArray<std::uint32_t>::staging(runtime, 100, device);
      EXPECT_TRUE(array.place().is_host());
      EXPECT_EQ(runtime.memory().place_of(array.data()), Place());
      std::iota(array.span().begin(), array.span().end(), 0U);
      EXPECT_EQ(array.span()[99], 99U);
    }
    co_return;
  });
}

TEST(Stream, DoesItsWorkInOrderAndLater) {
  in_job([](Runtime& runtime) -> Task<> {
    Stream stream(runtime, kEmulatedPlace);
    DeviceArray<int> device(runtime, 4, kEmulatedPlace);
    std::vector<int> host{1, 2, 3, 4};
    std::vector<int> back(4);
    memory::Buffer from{host.data(), 16, {}, nullptr};
    memory::Buffer to{back.data(), 16, {}, nullptr};
    stream.copy(device.buffer(), from);
    stream.launch([span = device.span()](const DeviceView& view) {
      for (int& value : view(span)) value *= 10;
    });
    stream.copy(to, device.buffer());
    EXPECT_EQ(back, std::vector<int>(4)) << "nothing runs inside the call";
    co_await stream.done();
    EXPECT_EQ(back, (std::vector<int>{10, 20, 30, 40}));
    EXPECT_EQ(device.buffer(stream).stream, stream.handle());
    EXPECT_EQ(device.buffer().stream, nullptr);
  });
}

TEST(Stream, AGraphIsCapturedOnceAndLaunchedOften) {
  in_job([](Runtime& runtime) -> Task<> {
    Stream stream(runtime, kEmulatedPlace);
    DeviceArray<int> device(runtime, 1, kEmulatedPlace);
    int value = 3;
    int back = 0;
    const memory::Buffer host{&back, sizeof back, {}, nullptr};
    stream.copy(device.buffer(), memory::Buffer{&value, sizeof value, {}, nullptr});
    const StreamGraph graph = stream.capture([&] {
      stream.launch([span = device.span()](const DeviceView& view) { view(span)[0] *= 10; });
      stream.copy(host, device.buffer());
      EXPECT_NE(error_of([&] { static_cast<void>(stream.capture([] {})); }).find("is being captured"),
                std::string::npos);
    });
    co_await stream.done();
    EXPECT_EQ(back, 0) << "a capture does nothing";
    for (int launch = 0; launch < 3; ++launch) stream.launch(graph);
    co_await stream.done();
    EXPECT_EQ(back, 3000);
    stream.launch(StreamGraph());
    co_await stream.done();
    EXPECT_EQ(back, 3000);

    const auto fail = [&] {
      static_cast<void>(
          stream.capture([] { throw base::Error(base::StatusCode::kInternal, "no such thing"); }));
    };
    EXPECT_EQ(error_of(fail), "no such thing");
    co_await stream.done();  // the capture has ended
  });
}

TEST(Stream, AFailedKernelIsTheFailureOfDone) {
  in_job([](Runtime& runtime) -> Task<> {
    Stream stream(runtime, kEmulatedPlace);
    stream.launch([](const DeviceView&) { throw std::runtime_error("no such thing"); });
    std::string message;
    try {
      co_await stream.done();
    } catch (const base::Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find("a kernel threw 'no such thing'"), std::string::npos) << message;

    // Memory that is gone when the kernel's turn comes.
    DeviceArray<int> device(runtime, 4, kEmulatedPlace);
    stream.launch([span = device.span()](const DeviceView& view) { view(span)[0] = 1; });
    device = DeviceArray<int>();
    try {
      co_await stream.done();
    } catch (const base::Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find("not inside one emulated allocation"), std::string::npos) << message;
    co_await stream.done();  // and the stream goes on
  });
}

TEST(Stream, MistakesAreToldAtTheCall) {
  in_job([](Runtime& runtime) -> Task<> {
    Stream host(runtime, Place());
    EXPECT_NE(error_of([&] { host.launch([](const DeviceView&) {}); }).find("on emulated devices; on host"),
              std::string::npos);
    EXPECT_NE(error_of([&] { static_cast<void>(host.capture([] {})); }).find("on emulated devices; on host"),
              std::string::npos);
    Stream stream(runtime, kEmulatedPlace);
    DeviceArray<int> device(runtime, 4, kEmulatedPlace);
    int value = 0;
    EXPECT_EQ(error_of([&] { stream.copy(device.buffer(), memory::Buffer{&value, 4, {}, nullptr}); }),
              "a copy of 4 bytes on host cannot fill 16 bytes on emulated:1");
    co_return;
  });
}

}  // namespace
}  // namespace weft::runtime
