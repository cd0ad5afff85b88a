// Files that processes share. The other process is this one: it opens the file through /proc in the same way.
#include "base/shared_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <limits>

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

}  // namespace
}  // namespace weft::base
