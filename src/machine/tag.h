// The 64-bit tags of the machine's matched messages, most significant bits first:
//
// "Device messages" are buffers in place beside a message, of any kind of memory.
//
//   device message   type 4 | source PE 32 | counter 28     counter kept by the source PE
//   channel          type 4 | channel id 28 | counter 32    counter kept by each end of the channel
//
// Counters wrap. Types 3.. belong to models that need tags of their own (MPI).
#pragma once

#include <cstdint>

namespace weft::machine {

using Tag = std::uint64_t;

inline constexpr int kTagTypeBits = 4;
inline constexpr int kDevicePeBits = 32;
inline constexpr int kDeviceCounterBits = 28;
inline constexpr int kChannelIdBits = 28;
inline constexpr int kChannelCounterBits = 32;
static_assert(kTagTypeBits + kDevicePeBits + kDeviceCounterBits == 64);
static_assert(kTagTypeBits + kChannelIdBits + kChannelCounterBits == 64);

inline constexpr Tag kFullTagMask = ~Tag{0};
inline constexpr std::uint32_t kDeviceCounterMask = (std::uint32_t{1} << kDeviceCounterBits) - 1;
inline constexpr std::uint32_t kMaxChannelId = (std::uint32_t{1} << kChannelIdBits) - 1;

enum class TagType : std::uint8_t { kDevice = 1, kChannel = 2, kUser = 3 };

constexpr Tag device_tag(std::uint32_t source_pe, std::uint32_t counter) {
  return Tag{static_cast<std::uint8_t>(TagType::kDevice)} << (64 - kTagTypeBits) |
         Tag{source_pe} << kDeviceCounterBits | (counter & kDeviceCounterMask);
}

constexpr Tag channel_tag(std::uint32_t channel_id, std::uint32_t counter) {
  return Tag{static_cast<std::uint8_t>(TagType::kChannel)} << (64 - kTagTypeBits) |
         Tag{channel_id & kMaxChannelId} << kChannelCounterBits | counter;
}

}  // namespace weft::machine
