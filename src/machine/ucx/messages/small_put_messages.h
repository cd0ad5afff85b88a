// The messages of small puts, as they travel: two words each. So a put of 8 bytes, with the 36 bytes that UCX adds, lies in one line
// of 64 bytes of UCX's queue in shared memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::machine::ucx {

using MessageWords = std::array<std::uint64_t, 2>;

// A put. Its payload is the data.
struct SmallPutRequest {
  static constexpr int kOffsetBits = 40;
  static constexpr int kSlotBits = 24;
  static constexpr int kRegionBits = 28;
  static constexpr int kPeBits = 20;
  static constexpr int kNumberBits = 16;

  std::uint64_t region;  // the owner's number of the registration
  std::uint64_t offset_bytes;
  std::uint32_t slot;       // where the caller keeps the put
  std::uint32_t source_pe;  // the caller
  std::uint32_t number;     // of the caller's puts, modulo 2^kNumberBits

  static constexpr std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }
  // REQUIRES: each value has no more than its bits.
  MessageWords pack() const {
    return {
        offset_bytes | std::uint64_t{slot} << kOffsetBits,
        region | std::uint64_t{source_pe} << kRegionBits | std::uint64_t{number} << (kRegionBits + kPeBits)};
  }
  static SmallPutRequest unpack(const MessageWords& words) {
    return {words[1] & mask(kRegionBits), words[0] & mask(kOffsetBits),
            static_cast<std::uint32_t>(words[0] >> kOffsetBits),
            static_cast<std::uint32_t>(words[1] >> kRegionBits & mask(kPeBits)),
            static_cast<std::uint32_t>(words[1] >> (kRegionBits + kPeBits))};
  }
};
static_assert(SmallPutRequest::kOffsetBits + SmallPutRequest::kSlotBits == 64);
static_assert(SmallPutRequest::kRegionBits + SmallPutRequest::kPeBits + SmallPutRequest::kNumberBits == 64);
static_assert(SmallPutRequest::kSlotBits <= 32 && SmallPutRequest::kPeBits <= 32 &&
              SmallPutRequest::kNumberBits <= 32);

// The owner's answer, without a payload.
struct SmallPutAnswer {
  std::uint32_t slot;       // as in the request
  std::uint32_t source_pe;  // the owner
  std::uint32_t number;     // as in the request
  std::uint32_t code;       // a StatusCode

  MessageWords pack() const {
    return {slot | std::uint64_t{number} << 32, source_pe | std::uint64_t{code} << 32};
  }
  static SmallPutAnswer unpack(const MessageWords& words) {
    return {static_cast<std::uint32_t>(words[0]), static_cast<std::uint32_t>(words[1]),
            static_cast<std::uint32_t>(words[0] >> 32), static_cast<std::uint32_t>(words[1] >> 32)};
  }
};

// False if the header has another size.
inline bool read_words(const void* header, std::size_t header_bytes, MessageWords& words) {
  if (header_bytes != sizeof words) return false;
  std::memcpy(words.data(), header, sizeof words);
  return true;
}

}  // namespace weft::machine::ucx
