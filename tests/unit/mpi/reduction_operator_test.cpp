#include "models/mpi/operation/reduction_operator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "models/mpi/datatype/describing/constructors.h"
#include "models/mpi/datatype/predefined.h"
#include "models/mpi/operation/numbers.h"

namespace weft::mpi {
namespace {

class ReductionOperatorTest : public ::testing::Test {
 protected:
  Datatype& named(MPI_Datatype handle) { return *types_.find(handle); }

  template <class T>
  T reduced(MPI_Op operation, MPI_Datatype type, T in, T inout) {
    EXPECT_TRUE(operations_.find(operation)->check(named(type)).ok());
    operations_.find(operation)->reduce(&in, &inout, 1, named(type));
    return inout;
  }
  bool is_defined(MPI_Op operation, MPI_Datatype type) {
    return operations_.find(operation)->check(named(type)).ok();
  }

  PredefinedTypes types_;
  PredefinedOperators operations_;
};

// The table of MPI 5.0, section 6.9.2, and the two additions of kernels.cpp.
TEST_F(ReductionOperatorTest, OperatorsAreDefinedForTheTypesOfTheStandard) {
  const MPI_Op arithmetic[] = {MPI_SUM, MPI_PROD};
  const MPI_Op ordering[] = {MPI_MIN, MPI_MAX};
  const MPI_Op bitwise[] = {MPI_BAND, MPI_BOR, MPI_BXOR};
  const MPI_Op logical[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
  for_each_basic_type([&](const BasicType& type) {
    SCOPED_TRACE(type.name);
    const bool integer = type.kind == BasicKind::kInteger || type.handle == MPI_CHAR;
    const bool real = type.kind == BasicKind::kReal;
    for (const MPI_Op op : arithmetic)
      EXPECT_EQ(is_defined(op, type.handle), integer || real || type.kind == BasicKind::kComplex);
    for (const MPI_Op op : ordering) EXPECT_EQ(is_defined(op, type.handle), integer || real);
    for (const MPI_Op op : bitwise)
      EXPECT_EQ(is_defined(op, type.handle), integer || type.kind == BasicKind::kByte);
    for (const MPI_Op op : logical)
      EXPECT_EQ(is_defined(op, type.handle), integer || type.kind == BasicKind::kLogical);
    EXPECT_FALSE(is_defined(MPI_MINLOC, type.handle));
    EXPECT_TRUE(is_defined(MPI_REPLACE, type.handle));
    EXPECT_TRUE(is_defined(MPI_NO_OP, type.handle));
  });
  for_each_pair_type([&](const PairType& type) {
    EXPECT_TRUE(is_defined(MPI_MINLOC, type.handle)) << type.name;
    EXPECT_TRUE(is_defined(MPI_MAXLOC, type.handle)) << type.name;
    EXPECT_FALSE(is_defined(MPI_SUM, type.handle)) << type.name;
  });
}

TEST_F(ReductionOperatorTest, NumbersAreCombined) {
  EXPECT_EQ(reduced<int>(MPI_SUM, MPI_INT, 2, 3), 5);
  EXPECT_EQ(reduced<int>(MPI_SUM, MPI_INT, std::numeric_limits<int>::max(), 1),
            std::numeric_limits<int>::min());
  EXPECT_EQ(reduced<std::int16_t>(MPI_PROD, MPI_INT16_T, -32768, -32768), 0);
  EXPECT_EQ(reduced<std::uint16_t>(MPI_PROD, MPI_UINT16_T, 65535, 65535), 1);
  EXPECT_EQ(reduced<std::int8_t>(MPI_MIN, MPI_INT8_T, -5, 3), -5);
  EXPECT_EQ(reduced<std::uint8_t>(MPI_MIN, MPI_UINT8_T, 251, 3), 3);
  EXPECT_EQ(reduced<double>(MPI_MAX, MPI_DOUBLE, 2.5, -1.0), 2.5);
  EXPECT_EQ(reduced<float>(MPI_PROD, MPI_REAL, 2.5F, -2.0F), -5.0F);
  EXPECT_EQ(reduced<long double>(MPI_SUM, MPI_LONG_DOUBLE, 1.0L, 0x1p-60L), 1.0L + 0x1p-60L);
  EXPECT_TRUE(reduced<Float128>(MPI_SUM, MPI_REAL16, 1.0, 2.0) == Float128(3.0));
  EXPECT_TRUE(reduced<Int128>(MPI_PROD, MPI_INTEGER16, Int128{1} << 70, 4) == Int128{1} << 72);
}

TEST_F(ReductionOperatorTest, BitsAndTruthValuesAreCombined) {
  EXPECT_EQ(reduced<int>(MPI_BAND, MPI_INT, 6, 3), 2);
  EXPECT_EQ(reduced<unsigned char>(MPI_BOR, MPI_BYTE, 0x81, 0x03), 0x83);
  EXPECT_EQ(reduced<long>(MPI_BXOR, MPI_AINT, 6, 3), 5);
  EXPECT_EQ(reduced<int>(MPI_LAND, MPI_INT, 2, 4), 1);
  EXPECT_EQ(reduced<bool>(MPI_LOR, MPI_CXX_BOOL, false, true), true);
  EXPECT_EQ(reduced<int>(MPI_LXOR, MPI_LOGICAL, 1, 1), 0);
}

TEST_F(ReductionOperatorTest, ComplexNumbersAreMultiplied) {
  using Complex = std::complex<double>;
  EXPECT_EQ(reduced<Complex>(MPI_PROD, MPI_CXX_DOUBLE_COMPLEX, {1, 2}, {3, 4}), Complex(-5, 10));
  EXPECT_EQ(reduced<Complex>(MPI_SUM, MPI_DOUBLE_COMPLEX, {1, 2}, {3, 4}), Complex(4, 6));
}

TEST_F(ReductionOperatorTest, HalvesAreRoundedToTheNearest) {
  EXPECT_EQ(float(reduced<Half>(MPI_SUM, MPI_REAL2, Half(1.5F), Half(0.25F))), 1.75F);
  EXPECT_EQ(float(Half(65519.0F)), 65504.0F);
  EXPECT_TRUE(std::isinf(float(Half(65520.0F))));
  EXPECT_EQ(float(Half(0x1p-24F)), 0x1p-24F);
  EXPECT_EQ(float(Half(0x1p-26F)), 0.0F);
  EXPECT_EQ(float(Half(1.0F + 0x1p-11F)), 1.0F);  // half way: to even
  EXPECT_EQ(float(Half(1.0F + 3 * 0x1p-11F)), 1.0F + 0x1p-9F);
  EXPECT_TRUE(std::isnan(float(Half(std::nanf("")))));
  EXPECT_TRUE(std::signbit(float(Half(-0.0F))));
  for (int bits = 0; bits < 0x7C00; ++bits) {  // every finite number survives
    const Half half = std::bit_cast<Half>(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(std::bit_cast<std::uint16_t>(Half(float(half))), bits);
  }
}

TEST_F(ReductionOperatorTest, PairsKeepTheSmallerIndexOfEqualValues) {
  struct Pair {
    double value;
    int index;
  };
  EXPECT_EQ(reduced<Pair>(MPI_MINLOC, MPI_DOUBLE_INT, {1.0, 7}, {2.0, 3}).index, 7);
  EXPECT_EQ(reduced<Pair>(MPI_MAXLOC, MPI_DOUBLE_INT, {1.0, 7}, {2.0, 3}).index, 3);
  EXPECT_EQ(reduced<Pair>(MPI_MAXLOC, MPI_DOUBLE_INT, {2.0, 1}, {2.0, 3}).index, 1);
  EXPECT_EQ(reduced<Pair>(MPI_MINLOC, MPI_DOUBLE_INT, {2.0, 9}, {2.0, 3}).index, 3);
  struct Reals {
    float value;
    float index;
  };
  EXPECT_EQ(reduced<Reals>(MPI_MINLOC, MPI_2REAL, {1, 8}, {2, 4}).index, 8);
}

TEST_F(ReductionOperatorTest, DuplicatesOfPairsWorkToo) {
  struct Pair {
    long value;
    int index;
  };
  Ref<Datatype> duplicate;
  ASSERT_TRUE(make_dup(named(MPI_LONG_INT), &duplicate).ok());
  const ReductionOperator& operation = *operations_.find(MPI_MAXLOC);
  ASSERT_TRUE(operation.check(*duplicate).ok());
  const Pair in[] = {{1, 10}, {5, 11}};
  Pair inout[] = {{2, 20}, {2, 21}};
  operation.reduce(in, inout, 2, *duplicate);
  EXPECT_EQ(inout[0].index, 20);
  EXPECT_EQ(inout[1].index, 11);
}

TEST_F(ReductionOperatorTest, ReplaceCopiesAndNoOpDoesNot) {
  Ref<Datatype> column;
  ASSERT_TRUE(make_vector({3, 1, 2}, named(MPI_INT), CallForm::kSmall, &column).ok());
  const std::vector<int> in{1, 2, 3, 4, 5};
  std::vector<int> inout(5, 0);
  operations_.find(MPI_NO_OP)->reduce(in.data(), inout.data(), 1, *column);
  EXPECT_EQ(inout, (std::vector<int>{0, 0, 0, 0, 0}));
  operations_.find(MPI_REPLACE)->reduce(in.data(), inout.data(), 1, *column);
  EXPECT_EQ(inout, (std::vector<int>{1, 0, 3, 0, 5}));
}

void add_ints(void* in, void* inout, int* length, MPI_Datatype* type) {
  EXPECT_EQ(*type, MPI_INT);
  for (int i = 0; i < *length; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

void subtract_ints(void* in, void* inout, MPI_Count* length, MPI_Datatype*) {
  for (MPI_Count i = 0; i < *length; ++i)
    static_cast<int*>(inout)[i] = static_cast<int*>(in)[i] - static_cast<int*>(inout)[i];
}

TEST_F(ReductionOperatorTest, FunctionsOfTheProgramAreCalled) {
  const Ref<ReductionOperator> add = Ref<ReductionOperator>::adopt(new ReductionOperator(&add_ints, true));
  const Ref<ReductionOperator> subtract =
      Ref<ReductionOperator>::adopt(new ReductionOperator(&subtract_ints, false));
  EXPECT_TRUE(add->is_commutative());
  EXPECT_FALSE(subtract->is_commutative());
  std::vector<int> in(100);
  std::iota(in.begin(), in.end(), 0);
  std::vector<int> inout(100, 5);
  add->reduce(in.data(), inout.data(), 100, named(MPI_INT));
  EXPECT_EQ(inout[99], 104);
  subtract->reduce(in.data(), inout.data(), 100, named(MPI_INT));
  EXPECT_EQ(inout[99], -5);
}

TEST_F(ReductionOperatorTest, UndefinedOperationsAreErrorsWithNames) {
  const Error error = operations_.find(MPI_MAX)->check(named(MPI_C_DOUBLE_COMPLEX));
  EXPECT_EQ(error.error_class, MPI_ERR_OP);
  EXPECT_NE(error.text.find("MPI_MAX is not defined for MPI_C_DOUBLE_COMPLEX"), std::string::npos)
      << error.text;
  EXPECT_EQ(operations_.find(MPI_OP_NULL), nullptr);
  EXPECT_FALSE(operations_.find(MPI_REPLACE)->is_commutative());
}

}  // namespace
}  // namespace weft::mpi
