#include "machine/peer_memory/mapping/imports.h"

#include <gtest/gtest.h>

#include "tests/support/device_memory.h"

namespace weft::machine {
namespace {

using memory::Buffer;
using memory::Kind;
using memory::Place;

constexpr Place kImportedDevice{Kind::kEmulated, 0};
constexpr int kOwner = 7;

struct ImportsTest : ::testing::Test {
  ~ImportsTest() override { imports.close(); }

  struct Offer {
    PeerBuffer buffer;
    std::vector<std::byte> bytes;
  };
  Offer offer(std::uint64_t number, std::size_t size_bytes = 1000) {
    const Buffer buffer = owner.allocate(size_bytes, kImportedDevice).value();
    return offer_of(buffer, number);
  }
  Offer offer_of(const Buffer& buffer, std::uint64_t number) {
    auto bytes = owner.backend(Kind::kEmulated)->export_allocation(buffer.data).value();
    const PeerBuffer posted{number,
                            reinterpret_cast<std::uintptr_t>(buffer.data),
                            buffer.size_bytes,
                            0,
                            buffer.size_bytes,
                            kImportedDevice,
                            static_cast<std::uint32_t>(bytes.size())};
    return {posted, bytes};
  }
  Imports::Import* find(const Offer& offer, Place from = kImportedDevice, int pe = kOwner) {
    return imports.find(pe, offer.buffer, offer.bytes, from);
  }

  memory::Memory owner;
  memory::Memory memory;
  std::vector<std::uint64_t> forgotten;
  Imports imports{memory, [this](int pe, std::uint64_t number) {
                    EXPECT_EQ(pe, kOwner);
                    forgotten.push_back(number);
                  }};
};

TEST_F(ImportsTest, AnAllocationIsMappedOncePerDevice) {
  const Offer offered = offer(1);
  Imports::Import* const import = find(offered);
  ASSERT_NE(import, nullptr);
  EXPECT_EQ(import->mapped.size_bytes, 1000u);
  EXPECT_EQ(find(offered), import);
  Imports::Import* const other = find(offered, {Kind::kEmulated, 1});
  ASSERT_NE(other, nullptr);
  EXPECT_NE(other->mapped.data, import->mapped.data);
  EXPECT_EQ(other->mapped.place.device, 1);
  // The number is the owner's: another PE's means something else.
  const Offer others = offer(1);
  EXPECT_NE(find(others, kImportedDevice, kOwner + 1)->mapped.data, import->mapped.data);
}

TEST_F(ImportsTest, WhatCannotBeMappedIsTriedAgainAFewTimesOnly) {
  Offer offered = offer(1);
  const Offer good = offered;
  offered.bytes.resize(3);
  for (std::uint64_t use = 0; use < Imports::kRetryUses + 2; ++use) EXPECT_EQ(find(offered), nullptr);
  std::uint64_t use = 0;
  while (find(good) == nullptr && use <= 4 * Imports::kRetryUses) ++use;
  EXPECT_EQ(use, 4 * Imports::kRetryUses) << "the second retry comes after four times as many uses";
  Offer never = offer(2);
  const Offer too_late = never;
  never.bytes.resize(3);
  for (std::uint64_t i = 0; i < Imports::kRetryUses << 2 * Imports::kMaxTries; ++i)
    EXPECT_EQ(find(never), nullptr);
  for (std::uint64_t i = 0; i < Imports::kRetryUses << 2 * Imports::kMaxTries; ++i)
    EXPECT_EQ(find(too_late), nullptr);
}

TEST_F(ImportsTest, WhatCannotBeMappedIsNotTriedAgainAtOnce) {
  Offer offered = offer(1);
  const Offer good = offered;
  offered.bytes.resize(3);
  EXPECT_TRUE(imports.first_failure().ok());
  EXPECT_EQ(find(offered), nullptr);
  EXPECT_NE(imports.first_failure().message().find("3 bytes"), std::string_view::npos);
  EXPECT_EQ(find(good), nullptr);
  Offer unlike = offer(2);
  unlike.buffer.place.kind = Kind::kCuda;
  EXPECT_EQ(find(unlike), nullptr);
}

TEST_F(ImportsTest, ANumberWithAnotherAllocationIsNotBelieved) {
  const Offer offered = offer(1);
  ASSERT_NE(find(offered), nullptr);
  Offer wrong = offered;
  wrong.buffer.allocation_base += 4096;
  EXPECT_EQ(find(wrong), nullptr);
}

TEST_F(ImportsTest, ForgettingWaitsForTheCopiesUnderWay) {
  const Offer offered = offer(1);
  Imports::Import* const import = find(offered);
  ++import->copies_under_way;
  imports.forget(kOwner, 1);
  EXPECT_EQ(imports.size(), 1u);
  EXPECT_EQ(find(offered), nullptr) << "nothing new may use it";
  EXPECT_TRUE(forgotten.empty()) << "the owner hears of it when nothing is mapped";
  imports.copy_done(*import);
  EXPECT_EQ(imports.size(), 0u);
  EXPECT_EQ(forgotten, (std::vector<std::uint64_t>{1}));
  imports.forget(kOwner, 1);
  imports.forget(kOwner, 99);
  EXPECT_EQ(forgotten, (std::vector<std::uint64_t>{1, 1, 99})) << "also of what was never mapped here";
}

TEST_F(ImportsTest, ForgettingTakesTheMappingsOfAllDevicesAndNoOthers) {
  const Offer first = offer(1);
  const Offer second = offer(2);
  ASSERT_NE(find(first), nullptr);
  ASSERT_NE(find(first, {Kind::kEmulated, 1}), nullptr);
  ASSERT_NE(find(second), nullptr);
  ASSERT_NE(find(first, kImportedDevice, kOwner + 1), nullptr);
  imports.forget(kOwner, 1);
  EXPECT_EQ(imports.size(), 2u);
}

TEST_F(ImportsTest, ANewAllocationAtTheOwnersAddressTakesTheOldOnesPlace) {
  const Buffer buffer = owner.allocate(1000, kImportedDevice).value();
  ASSERT_NE(find(offer_of(buffer, 1)), nullptr);
  ASSERT_TRUE(owner.deallocate(buffer).ok());
  testing::emulated(owner).place_next_at(buffer.data);
  const Buffer again = owner.allocate(500, kImportedDevice).value();
  Imports::Import* const import = find(offer_of(again, 2));
  ASSERT_NE(import, nullptr);
  EXPECT_EQ(import->mapped.size_bytes, 500u);
  EXPECT_EQ(imports.size(), 1u);
}

TEST_F(ImportsTest, ALargerAllocationTakesThePlaceOfThoseThatItCovers) {
  const Buffer buffer = owner.allocate(1000, kImportedDevice).value();
  ASSERT_NE(find(offer_of(buffer, 1)), nullptr);
  Offer covers = offer(2, 20000);
  covers.buffer.allocation_base = reinterpret_cast<std::uintptr_t>(buffer.data) - 8000;
  ASSERT_NE(find(covers), nullptr);
  EXPECT_EQ(imports.size(), 1u);
}

TEST_F(ImportsTest, TheLeastRecentlyUsedMakesRoom) {
  std::vector<Offer> offers;
  for (std::uint64_t number = 1; number <= Imports::kMaxPerPe; ++number) {
    offers.push_back(offer(number, 8));
    ASSERT_NE(find(offers.back()), nullptr);
  }
  const Offer of_another = offer(1, 8);
  ASSERT_NE(find(of_another, kImportedDevice, kOwner + 1), nullptr);
  Imports::Import* const busy = find(offers[1]);
  Imports::Import* const used = find(offers[0]);
  ++busy->copies_under_way;
  for (std::size_t i = 3; i < offers.size(); ++i) ASSERT_NE(find(offers[i]), nullptr);
  const Offer more = offer(Imports::kMaxPerPe + 1, 8);
  ASSERT_NE(find(more), nullptr);
  EXPECT_EQ(imports.size(), Imports::kMaxPerPe + 1);
  const void* const where = used->mapped.data;
  EXPECT_EQ(find(offers[0])->mapped.data, where);
  EXPECT_EQ(find(offers[1]), busy);
  imports.copy_done(*busy);
}

}  // namespace
}  // namespace weft::machine
