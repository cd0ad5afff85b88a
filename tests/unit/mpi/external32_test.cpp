#include "models/mpi/datatype/external32.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "reference_typemap.h"

namespace weft::mpi {
namespace {

class External32Test : public ::testing::Test {
 protected:
  Datatype& named(MPI_Datatype handle) { return *types_.find(handle); }

  std::vector<int> packed(MPI_Datatype handle, const void* buffer, MPI_Count count) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(external32_size(named(handle), count).value()));
    const Error error = pack_external32(named(handle), buffer, count, bytes.data());
    EXPECT_TRUE(error.ok()) << error.text;
    std::vector<int> numbers;
    for (const std::byte byte : bytes) numbers.push_back(static_cast<int>(byte));
    return numbers;
  }

  static std::vector<std::byte> bytes_of(std::initializer_list<int> numbers) {
    std::vector<std::byte> bytes;
    for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
    return bytes;
  }

  PredefinedTypes types_;
};

TEST_F(External32Test, IntegersAreBigEndian) {
  const std::int32_t values[] = {1, -2};
  EXPECT_EQ(packed(MPI_INT, values, 2), (std::vector<int>{0, 0, 0, 1, 255, 255, 255, 254}));
  const std::int64_t large = 0x0102030405060708;
  EXPECT_EQ(packed(MPI_INT64_T, &large, 1), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(External32Test, LongsHaveFourBytesAndWideCharactersTwo) {
  const long values[] = {-3, 0x01020304};
  EXPECT_EQ(packed(MPI_LONG, values, 2), (std::vector<int>{255, 255, 255, 253, 1, 2, 3, 4}));
  const wchar_t character = L'A';
  EXPECT_EQ(packed(MPI_WCHAR, &character, 1), (std::vector<int>{0, 65}));
  long back[] = {0, 0};
  const std::vector<std::byte> bytes = bytes_of({255, 255, 255, 253, 1, 2, 3, 4});
  unpack_external32(named(MPI_LONG), back, 2, bytes.data());
  EXPECT_EQ(back[0], -3);
  EXPECT_EQ(back[1], 0x01020304);
  unsigned long without_sign = 0;
  unpack_external32(named(MPI_UNSIGNED_LONG), &without_sign, 1, bytes.data());
  EXPECT_EQ(without_sign, 0xFFFFFFFDUL);
}

TEST_F(External32Test, ValuesThatDoNotFitAreErrors) {
  const long large = 1L << 40;
  std::byte bytes[4];
  EXPECT_EQ(pack_external32(named(MPI_LONG), &large, 1, bytes).error_class, MPI_ERR_CONVERSION);
}

TEST_F(External32Test, RealNumbersAreIeee) {
  const double value = -1.5;
  EXPECT_EQ(packed(MPI_DOUBLE, &value, 1), (std::vector<int>{0xBF, 0xF8, 0, 0, 0, 0, 0, 0}));
  const float parts[] = {1.0F, -2.0F};
  EXPECT_EQ(packed(MPI_C_FLOAT_COMPLEX, parts, 1), (std::vector<int>{0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0}));
  const long double wide = -1.5L;
  const std::vector<int> expected{0xBF, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(packed(MPI_LONG_DOUBLE, &wide, 1), expected);
  const std::vector<std::byte> bytes = bytes_of({0xBF, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  long double back = 0;
  unpack_external32(named(MPI_LONG_DOUBLE), &back, 1, bytes.data());
  EXPECT_EQ(back, wide);
}

TEST_F(External32Test, PairsHaveNoPadding) {
  const struct {
    double value;
    int index;
  } pair{1.0, 7};
  EXPECT_EQ(packed(MPI_DOUBLE_INT, &pair, 1), (std::vector<int>{0x3F, 0xF0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}));
}

TEST_F(External32Test, ManyValuesGoThroughPortions) {
  std::vector<std::int32_t> values(5000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 77773);
  std::vector<std::byte> bytes(values.size() * 4);
  ASSERT_TRUE(pack_external32(named(MPI_INT), values.data(), 5000, bytes.data()).ok());
  std::vector<std::int32_t> back(values.size());
  unpack_external32(named(MPI_INT), back.data(), 5000, bytes.data());
  EXPECT_EQ(back, values);
}

// Each basic value of a random datatype is found at its place, with its bytes reversed.
TEST_F(External32Test, RandomTypesKeepTheOrderOfTheTypemap) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    type_testing::RandomTypes random(seed);
    const type_testing::BothTypes both = random.make(static_cast<int>(seed % 3) + 1);
    const MPI_Count count = random.number(1, 3);
    const std::vector<MPI_Count> places = both.map.byte_displacements(count);
    if (places.empty()) continue;
    const auto [least, most] = std::minmax_element(places.begin(), places.end());
    std::vector<std::byte> memory(static_cast<std::size_t>(*most - *least + 1));
    std::byte* const buffer = memory.data() - *least;
    for (std::size_t i = 0; i < places.size(); ++i) buffer[places[i]] = static_cast<std::byte>(i % 100);
    std::vector<std::byte> packed(static_cast<std::size_t>(external32_size(*both.type, count).value()));
    ASSERT_TRUE(pack_external32(*both.type, buffer, count, packed.data()).ok());
    std::size_t at = 0;
    std::size_t byte = 0;
    for (MPI_Count element = 0; element < count; ++element) {
      for (const type_testing::Typemap::TypemapEntry& entry : both.map.entries) {
        const std::size_t parts = entry.type->kind == BasicKind::kComplex ? 2 : 1;
        const std::size_t size = entry.type->size / parts;
        for (std::size_t part = 0; part < parts; ++part, byte += size, at += size) {
          if (entry.type->number == Number::kLongDouble) continue;  // converted, tested above
          for (std::size_t i = 0; i < size; ++i)
            ASSERT_EQ(packed[at + i], buffer[places[byte + size - 1 - i]]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::mpi
