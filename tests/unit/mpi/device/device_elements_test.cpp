#include "models/mpi/p2p/device_elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/busy_stream.h"
#include "tests/unit/mpi/device/device_view.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::TestMemory;

class DeviceElementsTest : public ::testing::Test {
 protected:
  memory::Memory& memory() { return job_.memory(0); }
  void wait_for(memory::StreamHandle stream) {
    runtime::Operation done = stream_done(job_.runtime(0), kDevicePlace, stream);
    ASSERT_EQ(job_.run_until([&] { return done.is_done(); }), "");
  }

  testing::MpiJob job_{1};
  DeviceElements elements_{job_.runtime(0)};
};

TEST_F(DeviceElementsTest, PacksAndUnpacksWithoutTheBytesInBetween) {
  const Ref<Datatype> type = blocks_of_three(4);
  TestMemory source(memory(), kDevicePlace, 2 * 18);
  TestMemory destination(memory(), kDevicePlace, 2 * 18, 100);
  const DataView from = view_of_elements(source, *type, 2);
  auto block = elements_.pack(from);
  ASSERT_TRUE(block.ok()) << block.status().to_string();
  const memory::Buffer packed = block->buffer();
  EXPECT_EQ(packed.size_bytes, 24U);
  EXPECT_EQ(packed.place, kDevicePlace);
  wait_for(packed.stream);
  std::vector<std::uint8_t> expected(24);
  type->pack(source.filled().data(), 2, reinterpret_cast<std::byte*>(expected.data()));
  EXPECT_EQ(testing::contents(memory(), packed), expected);

  // The leading 20 bytes end within a block.
  const auto stream = elements_.unpack(view_of_elements(destination, *type, 2),
                                       static_cast<const std::byte*>(packed.data), 20);
  ASSERT_TRUE(stream.ok()) << stream.status().to_string();
  wait_for(stream.value().handle());
  std::vector<std::uint8_t> whole = destination.filled();
  type->unpack(whole.data(), 2, 0, 20, reinterpret_cast<const std::byte*>(expected.data()));
  EXPECT_EQ(destination.now(), whole);
}

TEST_F(DeviceElementsTest, PackingComesAfterTheWorkOfTheViewsStream) {
  const Ref<Datatype> type = blocks_of_three(4);
  TestMemory source(memory(), kDevicePlace, 18);
  std::uint8_t* const bytes = testing::view(memory(), source.buffer());
  bool may_end = false;
  DataView from = view_of_elements(source, *type, 1);
  from.stream = testing::stream_with(testing::emulated(memory()), 0, [&]() -> base::Status {
    if (!may_end) return base::Status::pending();
    std::fill(bytes, bytes + 18, std::uint8_t{7});
    return {};
  });
  auto block = elements_.pack(from);
  ASSERT_TRUE(block.ok());
  job_.settle();
  may_end = true;
  wait_for(block->buffer().stream);
  EXPECT_EQ(testing::contents(memory(), block->buffer()), std::vector<std::uint8_t>(12, 7));
}

TEST_F(DeviceElementsTest, WithoutMemoryItFails) {
  const Ref<Datatype> type = blocks_of_three(4);
  TestMemory source(memory(), kDevicePlace, 18);
  testing::emulated(memory()).set_faults({.device_bytes = 20});
  EXPECT_EQ(elements_.pack(view_of_elements(source, *type, 1)).status().code(),
            base::StatusCode::kOutOfMemory);
  testing::emulated(memory()).set_faults({});
}

}  // namespace
}  // namespace weft::mpi
