// Files that processes share. The other process is this one: it opens the file through /proc in the same way.
#include "base/shared_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "base/shared_mapping.h"

namespace weft::base {
namespace {

constexpr std::size_t kSize = 8192;

TEST(SharedFile, BothSidesMapOneMemory) {
  SharedFile own = SharedFile::create("weft-test", kSize).value();
  auto other = SharedFile::open(own.reference());
  ASSERT_TRUE(other.ok()) << other.status().to_string();
  EXPECT_EQ(other->size_bytes(), kSize);
  auto* const written = static_cast<char*>(own.map(0, kSize).value());
  auto* const seen = static_cast<char*>(other->map(4096, 4096).value());
  EXPECT_EQ(seen[1], 0) << "a new file holds zeros";
  written[4097] = 7;
  EXPECT_EQ(seen[1], 7);
  own = SharedFile();
  EXPECT_EQ(seen[1], 7) << "a mapping outlives its file";
  ::munmap(written, kSize);
  ::munmap(seen, 4096);
}

TEST(SharedFile, AClosedFileIsNotFound) {
  SharedFile own = SharedFile::create("weft-test", kSize).value();
  const SharedFileReference reference = own.reference();
  own = SharedFile();
  EXPECT_EQ(SharedFile::open(reference).status().code(), StatusCode::kNotFound);
}

TEST(SharedFile, AnotherFileWithTheSameDescriptorIsNotFound) {
  SharedFile own = SharedFile::create("weft-test", kSize).value();
  const SharedFileReference reference = own.reference();
  own = SharedFile();
  const SharedFile later = SharedFile::create("weft-test", kSize).value();
  ASSERT_EQ(later.descriptor(), reference.descriptor) << "the system gives the lowest free number";
  EXPECT_EQ(SharedFile::open(reference).status().code(), StatusCode::kNotFound);
}

TEST(SharedFile, APipeIsNeverOpened) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  SharedFileReference reference;
  reference.pid = ::getpid();
  reference.descriptor = ends[0];
  EXPECT_EQ(SharedFile::open(reference).status().code(), StatusCode::kNotFound);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(SharedFile, ASizeThatIsNotTheFilesIsRefused) {
  const SharedFile own = SharedFile::create("weft-test", kSize).value();
  for (const std::uint64_t size_bytes :
       {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{kSize + 1}, ~std::uint64_t{0}}) {
    SharedFileReference reference = own.reference();
    reference.size_bytes = size_bytes;
    EXPECT_EQ(SharedFile::open(reference).status().code(), StatusCode::kInvalidArgument) << size_bytes;
  }
}

TEST(SharedFile, ASizeThatNoFileCanHaveIsOutOfMemory) {
  EXPECT_EQ(SharedFile::create("weft-test", std::numeric_limits<std::size_t>::max()).status().code(),
            StatusCode::kOutOfMemory);
}

// Whoever has mapped the file would be killed by SIGBUS.
TEST(SharedFile, NoProcessChangesTheSize) {
  const SharedFile own = SharedFile::create("weft-test", kSize).value();
  const SharedFile other = SharedFile::open(own.reference()).value();
  for (const off_t size_bytes : {off_t{0}, off_t{4096}, off_t{2 * kSize}}) {
    EXPECT_EQ(::ftruncate(other.descriptor(), size_bytes), -1);
    EXPECT_EQ(errno, EPERM) << size_bytes;
  }
}

TEST(SharedFile, AFileWhoseSizeCanChangeIsNotFound) {
  const SharedFile sealed = SharedFile::create("weft-test", kSize).value();
  const int unsealed = ::memfd_create("weft-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(unsealed, 0);
  ASSERT_EQ(::ftruncate(unsealed, kSize), 0);
  struct stat state{};
  ASSERT_EQ(::fstat(unsealed, &state), 0);
  SharedFileReference reference = sealed.reference();
  reference.descriptor = unsealed;
  reference.inode = state.st_ino;
  EXPECT_EQ(SharedFile::open(reference).status().code(), StatusCode::kNotFound);
  ::close(unsealed);
}

// Without the check the system kills the process with SIGXFSZ.
TEST(SharedFile, AFileSizeLimitIsOutOfMemory) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{kSize, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool fits = SharedFile::create("weft-test", kSize).ok();
  const Status refused = SharedFile::create("weft-test", kSize + 1).status();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(fits);
  EXPECT_EQ(refused.code(), StatusCode::kOutOfMemory);
  EXPECT_NE(refused.message().find("ulimit -f"), std::string_view::npos) << refused.to_string();
}

TEST(SharedMapping, BothSidesSeeOneMemory) {
  SharedMapping own = SharedMapping::create("weft-test", kSize).value();
  auto other = SharedMapping::open(own.name(), kSize);
  ASSERT_TRUE(other.ok()) << other.status().to_string();
  EXPECT_NE(other->data(), own.data());
  EXPECT_EQ(other->name().nonce, own.name().nonce);
  for (std::size_t at = SharedMapping::kNonceBytes; at < kSize; ++at)
    ASSERT_EQ(other->data()[at], std::byte{0});
  own.data()[kSize - 1] = std::byte{7};
  EXPECT_EQ(other->data()[kSize - 1], std::byte{7});
}

TEST(SharedMapping, AMappingOutlivesItsCreatorsAndIsFoundNoMore) {
  SharedMapping own = SharedMapping::create("weft-test", kSize).value();
  const SharedMappingName name = own.name();
  SharedMapping other = SharedMapping::open(name, kSize).value();
  const SharedMapping moved = std::move(other);
  own.data()[kSize - 1] = std::byte{7};
  own = SharedMapping();
  EXPECT_FALSE(own);
  EXPECT_EQ(moved.data()[kSize - 1], std::byte{7});
  EXPECT_EQ(SharedMapping::open(name, kSize).status().code(), StatusCode::kNotFound);
}

TEST(SharedMapping, TwoFilesHaveTwoNumbers) {
  const SharedMapping one = SharedMapping::create("weft-test", kSize).value();
  const SharedMapping two = SharedMapping::create("weft-test", kSize).value();
  EXPECT_NE(one.name().nonce, two.name().nonce);
}

TEST(SharedMapping, AFileWithAnotherNumberOrSizeIsNotFound) {
  const SharedMapping own = SharedMapping::create("weft-test", kSize).value();
  SharedMappingName name = own.name();
  EXPECT_EQ(SharedMapping::open(name, 2 * kSize).status().code(), StatusCode::kNotFound);
  name.nonce ^= 1;
  EXPECT_EQ(SharedMapping::open(name, kSize).status().code(), StatusCode::kNotFound);
  name = own.name();
  name.file.size_bytes = 2 * kSize;
  EXPECT_EQ(SharedMapping::open(name, 2 * kSize).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(SharedMapping::open({}, kSize).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace weft::base
