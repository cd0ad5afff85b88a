// Emulated allocations that other processes map. The importer is another backend of this process, which finds
// the file in the same way as another process does; tests/multiproc has two processes.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

#include "base/shared_file.h"
#include "memory/kinds/emulated/emulated_backend.h"
#include "memory/kinds/kind_cache.h"
#include "memory/memory.h"
#include "tests/unit/memory/outcome.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

constexpr Place kDevice{Kind::kEmulated, 0};
constexpr std::size_t kSize = 10'000;

class SharingTest : public ::testing::Test {
 protected:
  ~SharingTest() override {
    for (Memory* memory : {&owner, &importer}) memory->close();
  }

  static KindBackend& emulated(Memory& memory) { return *memory.backend(Kind::kEmulated); }

  static Status move(Memory& memory, const Buffer& destination, const ConstBuffer& source) {
    Outcome outcome;
    Status started = memory.copy(destination, source, &outcome);
    if (!started.is_pending()) return started;
    poll_until_idle(memory);
    return outcome.status;
  }

  Memory owner;
  Memory importer;
};

TEST_F(SharingTest, BothSidesSeeOneMemory) {
  const Buffer own = owner.allocate(kSize, kDevice).value();
  const auto first = pattern(kSize, 1);
  ASSERT_TRUE(move(owner, own, ConstBuffer(first.data(), kSize)).ok());
  // An address in the middle names the whole allocation.
  auto exported = emulated(owner).export_allocation(static_cast<std::byte*>(own.data) + 77);
  ASSERT_TRUE(exported.ok()) << exported.status().to_string();
  const Buffer imported = emulated(importer).import_allocation(*exported, 1).value();
  EXPECT_EQ(imported.size_bytes, kSize);
  EXPECT_EQ(imported.place, (Place{Kind::kEmulated, 1}));
  EXPECT_EQ(importer.place_of(imported.data), imported.place);

  std::vector<unsigned char> seen(kSize);
  ASSERT_TRUE(move(importer, host_buffer(seen), imported).ok());
  EXPECT_EQ(seen, first);
  const auto second = pattern(kSize, 2);
  ASSERT_TRUE(move(importer, imported, ConstBuffer(second.data(), kSize)).ok());
  ASSERT_TRUE(move(owner, host_buffer(seen), own).ok());
  EXPECT_EQ(seen, second);

  EXPECT_TRUE(emulated(importer).release_import(imported.data).ok());
  EXPECT_EQ(importer.place_of(imported.data), Place());
  EXPECT_TRUE(owner.deallocate(own).ok());
}

TEST_F(SharingTest, ExportedTwiceIsTheSame) {
  const Buffer own = owner.allocate(kSize, kDevice).value();
  EXPECT_EQ(emulated(owner).export_allocation(own.data).value(),
            emulated(owner).export_allocation(own.data).value());
  EXPECT_TRUE(owner.deallocate(own).ok());
}

TEST_F(SharingTest, TheImporterLearnsThatTheOwnerFreedIt) {
  const Buffer own = owner.allocate(kSize, kDevice).value();
  const auto exported = emulated(owner).export_allocation(own.data).value();
  const Buffer imported = emulated(importer).import_allocation(exported, 0).value();
  EXPECT_NE(importer.allocation_of(imported.data).generation, 0u);
  std::vector<unsigned char> seen(kSize);
  Outcome pending;
  ASSERT_TRUE(importer.copy(host_buffer(seen), imported, &pending).is_pending());
  ASSERT_TRUE(owner.deallocate(own).ok());
  poll_until_idle(importer);
  EXPECT_EQ(pending.status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(pending.status.message().find("belongs to another process, which has freed it"),
            std::string::npos);
  EXPECT_EQ(importer.allocation_of(imported.data).generation, 0u);
  EXPECT_EQ(importer.place_of(imported.data), kDevice) << "never host memory: nobody may touch it";
  EXPECT_TRUE(emulated(importer).release_import(imported.data).ok());
  EXPECT_EQ(emulated(importer).import_allocation(exported, 0).status().code(), StatusCode::kNotFound);
}

TEST_F(SharingTest, AnOwnerThatGoesFreesIt) {
  auto other = std::make_unique<Memory>();
  const Buffer own = other->allocate(kSize, kDevice).value();
  const auto exported = emulated(*other).export_allocation(own.data).value();
  const Buffer imported = emulated(importer).import_allocation(exported, 0).value();
  other.reset();
  EXPECT_EQ(importer.allocation_of(imported.data).generation, 0u);
}

TEST_F(SharingTest, MemoryMadeAnewAtTheAddressIsNotTheOldOne) {
  const Buffer own = owner.allocate(kSize, kDevice).value();
  const auto exported = emulated(owner).export_allocation(own.data).value();
  ASSERT_TRUE(owner.deallocate(own).ok());
  static_cast<EmulatedBackend&>(emulated(owner)).place_next_at(own.data);
  const Buffer anew = owner.allocate(kSize, kDevice).value();
  ASSERT_EQ(anew.data, own.data);
  const auto exported_anew = emulated(owner).export_allocation(anew.data).value();
  EXPECT_NE(exported_anew, exported);
  EXPECT_TRUE(emulated(importer).import_allocation(exported, 0).status().failed());
  EXPECT_TRUE(emulated(importer).import_allocation(exported_anew, 0).ok());
  EXPECT_TRUE(owner.deallocate(anew).ok());
}

TEST_F(SharingTest, OnlyTheOwnerFreesAndExports) {
  const Buffer own = owner.allocate(kSize, kDevice).value();
  const auto exported = emulated(owner).export_allocation(own.data).value();
  const Buffer imported = emulated(importer).import_allocation(exported, 0).value();
  EXPECT_TRUE(importer.deallocate(imported).failed());
  EXPECT_TRUE(emulated(importer).export_allocation(imported.data).status().failed());
  EXPECT_TRUE(emulated(owner).release_import(own.data).failed());
  EXPECT_TRUE(emulated(importer).release_import(imported.data).ok());
  EXPECT_TRUE(emulated(importer).release_import(imported.data).failed());
  int on_stack = 0;
  EXPECT_TRUE(emulated(owner).export_allocation(&on_stack).status().failed());
  EXPECT_EQ(emulated(importer).import_allocation(exported, 9).status().code(), StatusCode::kOutOfRange);
  EXPECT_TRUE(owner.deallocate(own).ok());
}

// Bytes from a peer may hold anything.
TEST_F(SharingTest, BytesThatNameNothingAreRefused) {
  const Buffer own = owner.allocate(kSize, kDevice).value();
  const auto exported = emulated(owner).export_allocation(own.data).value();
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    auto bytes = exported;
    bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
    if (round % 10 == 0) bytes.resize(random() % bytes.size());
    auto imported = emulated(importer).import_allocation(bytes, 0);
    if (!imported.ok()) {
      ++refused;
    } else {
      // Only the size may have changed, and it fills the pages of the file.
      EXPECT_LE(imported->size_bytes, std::size_t{12288});
      EXPECT_GT(imported->size_bytes, std::size_t{8192});
      EXPECT_TRUE(emulated(importer).release_import(imported->data).ok());
    }
  }
  EXPECT_GT(refused, 1500);
  EXPECT_TRUE(owner.deallocate(own).ok());
}

TEST_F(SharingTest, ASizeThatIsNotTheFilesIsRefused) {
  const Buffer own = owner.allocate(kSize, kDevice).value();
  const auto exported = emulated(owner).export_allocation(own.data).value();
  const auto import_with = [&](std::size_t offset, std::uint64_t size_bytes) {
    auto bytes = exported;
    std::memcpy(&bytes[offset], &size_bytes, sizeof size_bytes);
    return emulated(importer).import_allocation(bytes, 0).status().code();
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t size_bytes :
       {std::uint64_t{0}, std::uint64_t{8192}, std::uint64_t{12289}, kMost, kMost - 4095, kMost / 2 + 1}) {
    EXPECT_EQ(import_with(sizeof(base::SharedFileReference), size_bytes), StatusCode::kInvalidArgument)
        << "an allocation of " << size_bytes;
    EXPECT_EQ(import_with(offsetof(base::SharedFileReference, size_bytes), size_bytes),
              StatusCode::kInvalidArgument)
        << "a file of " << size_bytes;
  }
  EXPECT_TRUE(owner.deallocate(own).ok());
}

TEST_F(SharingTest, ASizeThatRoundingWouldOverflowIsOutOfMemory) {
  for (const std::size_t size_bytes : {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2, SIZE_MAX / 2 + 1}) {
    EXPECT_EQ(owner.allocate(size_bytes, kDevice).status().code(), StatusCode::kOutOfMemory) << size_bytes;
  }
}

TEST_F(SharingTest, HostMemoryIsNotShared) {
  const Buffer host = owner.allocate(8, Place()).value();
  EXPECT_EQ(owner.backend(Kind::kHost)->export_allocation(host.data).status().code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(owner.backend(Kind::kHost)->import_allocation({}, 0).status().code(), StatusCode::kUnsupported);
  EXPECT_TRUE(owner.deallocate(host).ok());
}

}  // namespace
}  // namespace weft::memory
