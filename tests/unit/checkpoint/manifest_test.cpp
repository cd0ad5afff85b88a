#include "checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <string>

#include "base/value_or_throw.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::checkpoint_files {
namespace {

using base::StatusCode;
using testing::code_of;
using testing::TemporaryFolder;

Manifest some_manifest() {
  Manifest manifest;
  manifest.checkpoint = 99;
  CollectionEntry cells;
  cells.id = 1;
  cells.kind = 2;
  cells.type_name = "Cell";
  cells.extents = {2, 3};
  cells.num_elements = 6;
  CollectionEntry placed = cells;
  placed.id = 2;
  placed.extents = {2};
  placed.num_elements = 2;
  placed.table = {0, 1};
  manifest.collections = {cells, placed};
  manifest.files = {{24, 8, 5, 1}, {24, 8, 3, 2}};
  manifest.values = {std::byte{1}, std::byte{2}};
  return manifest;
}

TEST(Manifest, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  EXPECT_TRUE(write_manifest(folder / "m", some_manifest()).ok());
  const Manifest read = base::value_or_throw(read_manifest(folder / "m"));
  EXPECT_EQ(base::pack(read), base::pack(some_manifest()));
  EXPECT_EQ(read.num_indices(), (std::vector<std::uint64_t>{6, 2}));
}

TEST(Manifest, EveryDamageIsFound) {
  const TemporaryFolder folder;
  EXPECT_TRUE(write_manifest(folder / "m", some_manifest()).ok());
  testing::expect_every_damage_found(folder / "m", [&] { return read_manifest(folder / "m").status(); });
}

TEST(Manifest, RefusesNumbersThatDoNotFit) {
  const auto refused = [](auto change) {
    Manifest manifest = some_manifest();
    change(manifest);
    return code_of(check_manifest("the file", manifest), "the file") == StatusCode::kCorrupt;
  };
  EXPECT_FALSE(refused([](Manifest&) {}));
  EXPECT_FALSE(refused([](Manifest& m) {  // a sparse array
    m.collections[0].num_elements = 3;
    m.files[0].num_elements = 2;
  }));
  EXPECT_TRUE(refused([](Manifest& m) { m.collections[0].num_elements = 7; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.collections[0].extents = {}; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.collections[0].extents = {-2, -3}; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.collections[0].extents = {1 << 30, 1 << 30, 1 << 30}; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.collections[1].table = {0}; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files = {}; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files[0].num_elements = 6; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files[0].num_elements = ~std::uint64_t{0}; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.files[1].index_bytes = ~std::uint64_t{0}; }));
}

}  // namespace
}  // namespace weft::checkpoint_files
