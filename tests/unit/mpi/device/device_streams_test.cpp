#include "models/mpi/p2p/device_streams.h"

#include <gtest/gtest.h>

#include "tests/support/busy_stream.h"
#include "tests/unit/mpi/device/device_view.h"

namespace weft::mpi {
namespace {

TEST(DeviceStreams, AStreamBelongsToOneLease) {
  memory::Memory memory;
  DeviceStreams streams(memory);
  memory::StreamHandle first = nullptr;
  {
    const auto one = streams.take(kDevicePlace, nullptr);
    auto other = streams.take(kDevicePlace, nullptr);
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_NE(one.value().handle(), other->handle());
    first = one.value().handle();
  }
  const auto again = streams.take(kDevicePlace, nullptr);
  const auto third = streams.take(kDevicePlace, nullptr);
  EXPECT_TRUE(again.value().handle() == first || third.value().handle() == first);
}

TEST(DeviceStreams, WorkComesAfterThatOfTheStreamOfTheProgram) {
  memory::Memory memory;
  DeviceStreams streams(memory);
  memory::EmulatedBackend& device = testing::emulated(memory);
  bool may_end = false;
  const memory::StreamHandle programs = testing::stream_with(device, 0, testing::until(may_end));
  auto lease = streams.take(kDevicePlace, programs);
  ASSERT_TRUE(lease.ok());
  const memory::EventHandle event = device.record(lease->handle(), 0).value();
  for (int poll = 0; poll < 100; ++poll) ASSERT_TRUE(device.query(event).is_pending());
  may_end = true;
  while (device.query(event).is_pending()) {
  }
  EXPECT_TRUE(device.query(event).ok());
  device.release_event(event);
}

TEST(DeviceStreams, AStreamThatDoesNotExistIsAFailure) {
  memory::Memory memory;
  DeviceStreams streams(memory);
  EXPECT_TRUE(streams.take(kDevicePlace, reinterpret_cast<memory::StreamHandle>(12345)).status().failed());
}

}  // namespace
}  // namespace weft::mpi
