// Random nested datatypes against the typemap written out (reference_typemap.h). Each failure prints its seed.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "models/mpi/datatype/describing/remaking.h"
#include "reference_typemap.h"

namespace weft::mpi::type_testing {
namespace {

constexpr int kRandomTypes = 3000;

// Memory for `count` elements of a type, all of whose displacements are valid; filled with distinct bytes.
class TypedMemory {
 public:
  TypedMemory(const Typemap& map, MPI_Count count) {
    const MPI_Count last = (count - 1) * map.extent();
    begin_ = std::min(map.true_lower(), map.true_lower() + last);
    const MPI_Count end = std::max(map.true_upper(), map.true_upper() + last);
    bytes_.resize(static_cast<std::size_t>(std::max<MPI_Count>(end - begin_, 0)));
  }
  void number_bytes() {
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(i * 7 + i / 256);
  }
  std::byte* buffer() { return bytes_.data() - begin_; }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  MPI_Count begin_;
  std::vector<std::byte> bytes_;
};

class RandomTypesTest : public ::testing::Test {
 protected:
  template <class Check>
  static void for_each_random_type(std::uint64_t first_seed, const Check& check) {
    for (std::uint64_t seed = first_seed; seed < first_seed + kRandomTypes; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      RandomTypes random(seed);
      const BothTypes both = random.make(static_cast<int>(seed % 4) + 1);
      check(random, both);
      if (HasFailure()) return;
    }
  }
};

TEST_F(RandomTypesTest, BoundsAreThoseOfTheTypemap) {
  for_each_random_type(1, [](RandomTypes&, const BothTypes& both) {
    EXPECT_EQ(both.type->size_bytes(), both.map.size());
    EXPECT_EQ(both.type->lower_bound(), both.map.lower());
    EXPECT_EQ(both.type->extent(), both.map.extent());
    EXPECT_EQ(both.type->true_lower_bound(), both.map.true_lower());
    EXPECT_EQ(both.type->true_extent(), both.map.true_upper() - both.map.true_lower());
    EXPECT_EQ(both.type->signature().elements, static_cast<MPI_Count>(both.map.entries.size()));
  });
}

TEST_F(RandomTypesTest, PacksRangesOfBytes) {
  for_each_random_type(10001, [](RandomTypes& random, const BothTypes& both) {
    const MPI_Count count = random.number(1, 4);
    TypedMemory memory(both.map, count);
    memory.number_bytes();
    const std::vector<MPI_Count> places = both.map.byte_displacements(count);
    const auto size = static_cast<int>(places.size());
    for (int attempt = 0; attempt < 6; ++attempt) {
      const int first = attempt == 0 ? 0 : random.number(0, size);
      const int last = attempt == 0 ? size : random.number(first, size);
      std::vector<std::byte> packed(static_cast<std::size_t>(last - first) + 1, std::byte{0xEE});
      both.type->pack(memory.buffer(), count, first, last, packed.data());
      for (int i = first; i < last; ++i)
        ASSERT_EQ(packed[static_cast<std::size_t>(i - first)],
                  memory.buffer()[places[static_cast<std::size_t>(i)]])
            << "byte " << i << " of [" << first << ", " << last << ")";
      ASSERT_EQ(packed.back(), std::byte{0xEE});
    }
  });
}

TEST_F(RandomTypesTest, UnpacksPiecesInOrder) {
  for_each_random_type(20001, [](RandomTypes& random, const BothTypes& both) {
    const MPI_Count count = random.number(1, 4);
    const std::vector<MPI_Count> places = both.map.byte_displacements(count);
    std::vector<std::byte> packed(places.size());
    for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<std::byte>(i * 11 + i / 256);
    TypedMemory expected(both.map, count);
    for (std::size_t i = 0; i < places.size(); ++i) expected.buffer()[places[i]] = packed[i];
    TypedMemory memory(both.map, count);
    const auto size = static_cast<MPI_Count>(packed.size());
    for (MPI_Count first = 0; first < size;) {
      const MPI_Count last = std::min<MPI_Count>(size, first + random.number(1, 40));
      both.type->unpack(memory.buffer(), count, first, last, packed.data() + first);
      first = last;
    }
    EXPECT_EQ(memory.bytes(), expected.bytes());
  });
}

// What a device copies for the leading packed bytes.
TEST_F(RandomTypesTest, VisitsTheRunsOfLeadingBytes) {
  for_each_random_type(50001, [](RandomTypes& random, const BothTypes& both) {
    const MPI_Count count = random.number(1, 4);
    const std::vector<MPI_Count> places = both.map.byte_displacements(count);
    const auto size = static_cast<int>(places.size());
    for (const int leading : {size, random.number(0, size)}) {
      std::vector<MPI_Count> visited;
      both.type->visit_runs(nullptr, count, leading, [&](const EvenRuns& runs) {
        EXPECT_GT(runs.size_bytes, 0U);
        EXPECT_GT(runs.count, 0U);
        for (std::size_t i = 0; i < runs.count; ++i) {
          for (std::size_t k = 0; k < runs.size_bytes; ++k)
            visited.push_back(
                static_cast<MPI_Count>(runs.address + i * static_cast<std::size_t>(runs.stride) + k));
        }
      });
      EXPECT_EQ(visited, std::vector<MPI_Count>(places.begin(), places.begin() + leading));
    }
  });
}

// What a rank does with its datatypes when it has moved.
TEST_F(RandomTypesTest, TheRecipeMakesTheSameShape) {
  PredefinedTypes predefined;
  for_each_random_type(60001, [&](RandomTypes& random, const BothTypes& both) {
    if (both.type->is_predefined()) return;
    Shape shape;
    ASSERT_TRUE(remake_shape(both.type->recipe(), predefined, &shape).ok());
    const Ref<Datatype> again = Ref<Datatype>::adopt(new Datatype(std::move(shape), both.type->recipe()));
    EXPECT_EQ(again->lower_bound(), both.map.lower());
    EXPECT_EQ(again->extent(), both.map.extent());
    EXPECT_EQ(again->signature().elements, static_cast<MPI_Count>(both.map.entries.size()));
    const MPI_Count count = random.number(1, 4);
    TypedMemory memory(both.map, count);
    memory.number_bytes();
    const auto size = static_cast<std::size_t>(count * both.map.size());
    std::vector<std::byte> packed(size);
    std::vector<std::byte> expected(size);
    again->pack(memory.buffer(), count, packed.data());
    both.type->pack(memory.buffer(), count, expected.data());
    EXPECT_EQ(packed, expected);
  });
}

TEST_F(RandomTypesTest, CountsBasicElements) {
  for_each_random_type(30001, [](RandomTypes& random, const BothTypes& both) {
    const auto per_type = static_cast<int>(both.map.entries.size());
    if (per_type == 0) return;
    const int elements = random.number(0, 3 * per_type);
    MPI_Count bytes = elements / per_type * both.map.size();
    for (int i = 0; i < elements % per_type; ++i)
      bytes += both.map.entries[static_cast<std::size_t>(i)].type->size;
    EXPECT_EQ(elements_in_bytes(both.type->signature(), bytes), elements);
    EXPECT_EQ(bytes_of_elements(both.type->signature(), elements), bytes);
    const BasicType* next = both.map.entries[static_cast<std::size_t>(elements % per_type)].type;
    if (next->size == 1) return;
    EXPECT_EQ(elements_in_bytes(both.type->signature(), bytes + 1), std::nullopt);
  });
}

// The flags that let a message skip packing must agree with the typemap.
TEST_F(RandomTypesTest, DenseRangesAreDense) {
  for_each_random_type(40001, [](RandomTypes& random, const BothTypes& both) {
    const MPI_Count count = random.number(1, 3);
    const std::optional<MPI_Count> offset = both.type->dense_offset(count);
    EXPECT_TRUE(!both.type->is_contiguous() || offset == 0);
    if (!offset) return;
    const std::vector<MPI_Count> places = both.map.byte_displacements(count);
    for (std::size_t i = 0; i < places.size(); ++i) ASSERT_EQ(places[i], *offset + static_cast<MPI_Count>(i));
  });
}

}  // namespace
}  // namespace weft::mpi::type_testing
