#include "weft/runtime/device/registered_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

using testing::TestMemory;

struct Way {
  const char* machine;
  memory::Kind kind;
};

struct RegisteredMemoryTest : ::testing::TestWithParam<Way> {
  TestMemory memory(int pe, std::size_t size_bytes, std::uint8_t first) {
    return TestMemory(job.memory(pe), memory::Place{GetParam().kind, 0}, size_bytes, first);
  }
  static std::span<std::uint8_t> span(const memory::Buffer& buffer) {
    return {static_cast<std::uint8_t*>(buffer.data), buffer.size_bytes};
  }
  static constexpr std::size_t kBytes = 1'000'000;

  testing::InProcessJob job{2, GetParam().machine};
};

INSTANTIATE_TEST_SUITE_P(Ways, RegisteredMemoryTest,
                         ::testing::Values(Way{"loopback", memory::Kind::kHost},
                                           Way{"ucx", memory::Kind::kHost},
                                           Way{"ucx", memory::Kind::kEmulated}),
                         [](const auto& info) {
                           return std::string(info.param.machine) + "_" +
                                  std::string(memory::kind_name(info.param.kind));
                         });

// The PEs share a process, so that addresses can be arguments.
struct End : Chare<End> {
  Task<> send(std::uintptr_t memory, int times) {
    Channel channel(*this, proxy()[1]);
    for (int i = 0; i < times; ++i) co_await channel.send(at(memory).buffer());
  }
  Task<int> receive(std::uintptr_t memory, std::uintptr_t expected, int times) {
    Channel channel(*this, proxy()[0]);
    int num_right = 0;
    for (int i = 0; i < times; ++i) {
      memory::Buffer& buffer = at(memory).buffer();
      std::memset(testing::view(runtime().memory(), buffer), 0, buffer.size_bytes);
      co_await channel.recv(buffer);
      num_right += at(memory).now() == at(expected).filled();
    }
    co_return num_right;
  }
  static TestMemory& at(std::uintptr_t address) { return *reinterpret_cast<TestMemory*>(address); }
};

TEST_P(RegisteredMemoryTest, IsSentAndReceivedIntoAgainAndAgain) {
  TestMemory outgoing = memory(0, kBytes, 1);
  TestMemory incoming = memory(1, kBytes, 9);
  RegisteredMemory at_sender(job.runtime(0), span(outgoing.buffer()));
  RegisteredMemory at_receiver(job.runtime(1), span(incoming.buffer()));
  auto from = reinterpret_cast<std::uintptr_t>(&outgoing);
  auto into = reinterpret_cast<std::uintptr_t>(&incoming);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto ends = Group<End>::create(runtime);
    Future<> sending = ends[0].call<&End::send>(from, 20);
    int num_right = co_await ends[1].call<&End::receive>(into, from, 20);
    EXPECT_EQ(num_right, 20);
    co_await sending;
  }),
            "");
}

TEST_P(RegisteredMemoryTest, CanGoAndComeAgain) {
  for (int i = 0; i < 100; ++i) {
    TestMemory one = memory(0, 5000, 1);
    RegisteredMemory registered(job.runtime(0), span(one.buffer()));
  }
}

TEST_P(RegisteredMemoryTest, OfNothingIsNothing) {
  RegisteredMemory registered(job.runtime(0), std::span<double>());
}

TEST_P(RegisteredMemoryTest, MayOutliveTheMachinesEnd) {
  TestMemory one = memory(0, 5000, 1);
  RegisteredMemory registered(job.runtime(0), span(one.buffer()));
  job.runtime(0).close();
}

}  // namespace
}  // namespace weft::runtime
