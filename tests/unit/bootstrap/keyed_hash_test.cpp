#include "machine/bootstrap/hosts/keyed_hash.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace weft::machine {
namespace {

// Vectors of the authors of SipHash: the key is 00 01 ... 0f, message n is 00 01 ... n-1.
TEST(KeyedHashTest, ItIsSipHash24) {
  std::array<std::byte, kHashKeyBytes> key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
  const auto hash_of = [&key](std::size_t size) {
    std::vector<std::byte> message(size);
    for (std::size_t i = 0; i < size; ++i) message[i] = static_cast<std::byte>(i);
    return keyed_hash(key, message);
  };
  EXPECT_EQ(hash_of(0), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(hash_of(1), 0x74f839c593dc67fdU);
  EXPECT_EQ(hash_of(8), 0x93f5f5799a932462U);
  EXPECT_EQ(hash_of(15), 0xa129ca6149be45e5U);
  key[3] = std::byte{0};
  EXPECT_NE(hash_of(15), 0xa129ca6149be45e5U);
}

}  // namespace
}  // namespace weft::machine
