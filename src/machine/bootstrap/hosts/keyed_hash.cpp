#include "machine/bootstrap/hosts/keyed_hash.h"

#include <array>
#include <bit>

namespace weft::machine {
namespace {

constexpr std::size_t kWordBytes = 8;

// Up to eight bytes, the lowest first.
std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

struct SipState {
  std::array<std::uint64_t, 4> v;

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v[0] += v[1];
      v[2] += v[3];
      v[1] = std::rotl(v[1], 13) ^ v[0];
      v[3] = std::rotl(v[3], 16) ^ v[2];
      v[0] = std::rotl(v[0], 32);
      v[2] += v[1];
      v[0] += v[3];
      v[1] = std::rotl(v[1], 17) ^ v[2];
      v[3] = std::rotl(v[3], 21) ^ v[0];
      v[2] = std::rotl(v[2], 32);
    }
  }
  void take(std::uint64_t word) {
    v[3] ^= word;
    rounds(2);
    v[0] ^= word;
  }
};

}  // namespace

std::uint64_t keyed_hash(std::span<const std::byte, kHashKeyBytes> key, std::span<const std::byte> message) {
  const std::uint64_t k0 = little_endian(key.first<kWordBytes>());
  const std::uint64_t k1 = little_endian(key.last<kWordBytes>());
  SipState state{
      {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}};
  const std::uint64_t size_bits = std::uint64_t{message.size()} << 56;
  while (message.size() >= kWordBytes) {
    state.take(little_endian(message.first(kWordBytes)));
    message = message.subspan(kWordBytes);
  }
  state.take(size_bits | little_endian(message));
  state.v[2] ^= 0xff;
  state.rounds(4);
  return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}

}  // namespace weft::machine
