#include "models/mpi/datatype/datatype.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <vector>

#include "models/mpi/datatype/describing/arrays.h"
#include "models/mpi/datatype/describing/constructors.h"
#include "models/mpi/datatype/predefined.h"

namespace weft::mpi {
namespace {

class DatatypeTest : public ::testing::Test {
 protected:
  Datatype& named(MPI_Datatype handle) { return *types_.find(handle); }
  Ref<Datatype> made(const Error& error) {
    EXPECT_TRUE(error.ok()) << error.text;
    return made_;
  }

  PredefinedTypes types_;
  Ref<Datatype> made_;
};

TEST_F(DatatypeTest, PredefinedTypesHaveTheSizesOfC) {
  EXPECT_EQ(named(MPI_INT).size_bytes(), 4);
  EXPECT_EQ(named(MPI_LONG_DOUBLE).size_bytes(), MPI_Count{sizeof(long double)});
  EXPECT_EQ(named(MPI_C_DOUBLE_COMPLEX).extent(), 16);
  EXPECT_EQ(named(MPI_COMPLEX4).size_bytes(), 4);
  EXPECT_EQ(named(MPI_LOGICAL16).extent(), 16);
  EXPECT_EQ(named(MPI_BYTE).name(), "MPI_BYTE");
  EXPECT_TRUE(named(MPI_DOUBLE).is_committed());
  EXPECT_TRUE(named(MPI_DOUBLE).is_contiguous());
  EXPECT_EQ(types_.find(MPI_DATATYPE_NULL), nullptr);
}

TEST_F(DatatypeTest, PairTypesAreLaidOutLikeStructs) {
  struct DoubleInt {
    double value;
    int index;
  };
  EXPECT_EQ(named(MPI_DOUBLE_INT).size_bytes(), 12);
  EXPECT_EQ(named(MPI_DOUBLE_INT).extent(), MPI_Count{sizeof(DoubleInt)});
  EXPECT_EQ(named(MPI_SHORT_INT).size_bytes(), 6);
  EXPECT_EQ(named(MPI_SHORT_INT).extent(), 8);
  EXPECT_EQ(named(MPI_LONG_DOUBLE_INT).extent(), 32);
  EXPECT_TRUE(named(MPI_2INT).is_contiguous());
  EXPECT_EQ(named(MPI_2INT).signature().elements, 2);
}

TEST_F(DatatypeTest, StructsArePaddedToTheirAlignment) {
  const MPI_Count lengths[] = {1, 1};
  const MPI_Count places[] = {0, 8};
  Datatype* const parts[] = {&named(MPI_DOUBLE), &named(MPI_CHAR)};
  const Ref<Datatype> type = made(make_struct(lengths, places, parts, CallForm::kSmall, &made_));
  EXPECT_EQ(type->size_bytes(), 9);
  EXPECT_EQ(type->extent(), 16);
  EXPECT_EQ(type->true_extent(), 9);
}

TEST_F(DatatypeTest, OtherTypesAreNotPadded) {
  const Ref<Datatype> odd = made(make_hvector({3, 4, 49}, named(MPI_DOUBLE), CallForm::kSmall, &made_));
  EXPECT_EQ(odd->extent(), 2 * 49 + 32);
}

TEST_F(DatatypeTest, MarkersReachIntoTypesMadeOfResizedOnes) {
  const Ref<Datatype> wide = made(make_resized(-8, 32, named(MPI_INT), CallForm::kSmall, &made_));
  EXPECT_EQ(wide->lower_bound(), -8);
  EXPECT_EQ(wide->extent(), 32);
  EXPECT_EQ(wide->true_lower_bound(), 0);
  const Ref<Datatype> two = made(make_contiguous(2, *wide, CallForm::kSmall, &made_));
  EXPECT_EQ(two->lower_bound(), -8);
  EXPECT_EQ(two->extent(), 64);
}

// A vector of neighbouring blocks, a subarray of whole rows: no packing, whatever constructor made it.
TEST_F(DatatypeTest, NeighbouringBytesAreOneRange) {
  EXPECT_TRUE(made(make_vector({4, 3, 3}, named(MPI_INT), CallForm::kSmall, &made_))->is_contiguous());
  const MPI_Count lengths[] = {1, 2, 1};
  const MPI_Count places[] = {0, 1, 3};
  EXPECT_TRUE(made(make_indexed(lengths, places, named(MPI_INT), CallForm::kSmall, &made_))->is_contiguous());
  const MPI_Count sizes[] = {4, 6};
  const MPI_Count parts[] = {2, 6};
  const MPI_Count starts[] = {1, 0};
  const Ref<Datatype> rows =
      made(make_subarray({sizes, parts, starts, MPI_ORDER_C}, named(MPI_INT), CallForm::kSmall, &made_));
  EXPECT_FALSE(rows->is_contiguous());
  EXPECT_EQ(rows->dense_offset(1), 24);
  EXPECT_EQ(rows->dense_offset(2), std::nullopt);
}

TEST_F(DatatypeTest, ManyBlocksAreOneNode) {
  const Ref<Datatype> type =
      made(make_vector({1'000'000'000'000, 1, 2}, named(MPI_DOUBLE), CallForm::kLarge, &made_));
  EXPECT_EQ(type->layout().kind, Layout::Kind::kLoop);
  EXPECT_EQ(type->size_bytes(), 8'000'000'000'000);
  EXPECT_EQ(type->extent(), 16'000'000'000'000 - 8);
  const Ref<Datatype> pairs =
      made(make_contiguous(1'000'000'000'000, named(MPI_DOUBLE_INT), CallForm::kLarge, &made_));
  EXPECT_EQ(pairs->signature().elements, 2'000'000'000'000);
  EXPECT_EQ(elements_in_bytes(pairs->signature(), 12'000'000 + 8), 2'000'001);
}

TEST_F(DatatypeTest, NumbersThatDoNotFitAreErrors) {
  constexpr MPI_Count kMost = std::numeric_limits<MPI_Count>::max();
  EXPECT_EQ(make_contiguous(kMost, named(MPI_INT), CallForm::kLarge, &made_).error_class,
            MPI_ERR_VALUE_TOO_LARGE);
  EXPECT_EQ(make_hvector({3, 1, kMost}, named(MPI_INT), CallForm::kLarge, &made_).error_class,
            MPI_ERR_VALUE_TOO_LARGE);
  EXPECT_EQ(make_resized(kMost, kMost, named(MPI_INT), CallForm::kLarge, &made_).error_class,
            MPI_ERR_VALUE_TOO_LARGE);
  const MPI_Count lengths[] = {1, 1};
  const MPI_Count places[] = {-kMost, kMost};
  EXPECT_EQ(make_hindexed(lengths, places, named(MPI_INT), CallForm::kLarge, &made_).error_class,
            MPI_ERR_VALUE_TOO_LARGE);
  EXPECT_EQ(named(MPI_INT).packed_size(kMost), std::nullopt);
}

TEST_F(DatatypeTest, WrongArgumentsAreErrors) {
  EXPECT_EQ(make_contiguous(-1, named(MPI_INT), CallForm::kSmall, &made_).error_class, MPI_ERR_COUNT);
  EXPECT_EQ(make_vector({1, -1, 1}, named(MPI_INT), CallForm::kSmall, &made_).error_class, MPI_ERR_ARG);
  const MPI_Count sizes[] = {4};
  const MPI_Count parts[] = {3};
  const MPI_Count starts[] = {2};
  EXPECT_EQ(make_subarray({sizes, parts, starts, MPI_ORDER_C}, named(MPI_INT), CallForm::kSmall, &made_)
                .error_class,
            MPI_ERR_ARG);
  const int block[] = {MPI_DISTRIBUTE_BLOCK};
  const int one[] = {1};
  const int two[] = {2};
  EXPECT_EQ(make_darray({2, 0, sizes, block, one, two, MPI_ORDER_C}, named(MPI_INT), CallForm::kSmall, &made_)
                .error_class,
            MPI_ERR_ARG);
  EXPECT_EQ(make_darray({2, 2, sizes, block, two, two, MPI_ORDER_C}, named(MPI_INT), CallForm::kSmall, &made_)
                .error_class,
            MPI_ERR_ARG);
}

TEST_F(DatatypeTest, ContentsHaveTheFormOfTheCall) {
  const MPI_Count lengths[] = {1, 2};
  const MPI_Count places[] = {0, 40};
  const Recipe& small =
      made(make_hindexed(lengths, places, named(MPI_INT), CallForm::kSmall, &made_))->recipe();
  EXPECT_EQ(small.combiner, MPI_COMBINER_HINDEXED);
  EXPECT_EQ(small.integers, (std::vector<int>{2, 1, 2}));
  EXPECT_EQ(small.addresses, (std::vector<MPI_Aint>{0, 40}));
  EXPECT_TRUE(small.counts.empty());
  EXPECT_EQ(small.datatypes.at(0)->handle(), MPI_INT);
  const Ref<Datatype> kept = made(make_hindexed(lengths, places, named(MPI_INT), CallForm::kLarge, &made_));
  EXPECT_TRUE(kept->recipe().integers.empty());
  EXPECT_EQ(kept->recipe().counts, (std::vector<MPI_Count>{2, 1, 2, 0, 40}));
}

TEST_F(DatatypeTest, FortranTypesAreTheSameEachTime) {
  Datatype* first = nullptr;
  Datatype* second = nullptr;
  ASSERT_TRUE(types_.f90_real(12, MPI_UNDEFINED, &first).ok());
  ASSERT_TRUE(types_.f90_real(12, MPI_UNDEFINED, &second).ok());
  EXPECT_EQ(first, second);
  EXPECT_EQ(first->size_bytes(), 8);
  EXPECT_EQ(first->recipe().integers, (std::vector<int>{12, MPI_UNDEFINED}));
  ASSERT_TRUE(types_.f90_complex(MPI_UNDEFINED, 30, &first).ok());
  EXPECT_EQ(first->size_bytes(), 8);
  ASSERT_TRUE(types_.f90_integer(10, &first).ok());
  EXPECT_EQ(first->size_bytes(), 8);
  EXPECT_EQ(types_.f90_real(100, 1, &first).error_class, MPI_ERR_ARG);
  EXPECT_EQ(types_.f90_integer(39, &first).error_class, MPI_ERR_ARG);
}

TEST_F(DatatypeTest, SizedTypesAndPairsAreFound) {
  Datatype* found = nullptr;
  ASSERT_TRUE(types_.match_size(MPI_TYPECLASS_REAL, 8, &found).ok());
  EXPECT_EQ(found->handle(), MPI_REAL8);
  EXPECT_EQ(types_.match_size(MPI_TYPECLASS_REAL, 3, &found).error_class, MPI_ERR_ARG);
  EXPECT_EQ(types_.value_index(named(MPI_FLOAT), named(MPI_INT))->handle(), MPI_FLOAT_INT);
  EXPECT_EQ(types_.value_index(named(MPI_DOUBLE), named(MPI_INT64_T)), nullptr);
}

// A duplicate and the contents keep the datatype of which they are made.
TEST_F(DatatypeTest, APartLivesAsLongAsTheWhole) {
  Ref<Datatype> part = made(make_contiguous(3, named(MPI_INT), CallForm::kSmall, &made_));
  made_ = nullptr;
  const Ref<Datatype> whole = made(make_vector({2, 1, 2}, *part, CallForm::kSmall, &made_));
  EXPECT_EQ(part->num_references(), 2U);
  part = nullptr;
  EXPECT_EQ(whole->recipe().datatypes.at(0)->size_bytes(), 12);
}

}  // namespace
}  // namespace weft::mpi
