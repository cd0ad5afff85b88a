// Runs of the target's memory, accumulates on it, and the words of a window.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "models/mpi/collective/typed_view.h"
#include "models/mpi/datatype/describing/constructors.h"
#include "models/mpi/window/accumulation.h"
#include "models/mpi/window/target_runs.h"

namespace weft::mpi {
namespace {

template <class T>
std::byte* bytes(T& value) {
  return reinterpret_cast<std::byte*>(&value);
}

TEST(WindowRuns, NameTheBytesOfADatatype) {
  PredefinedTypes types;
  Ref<Datatype> vector;
  ASSERT_TRUE(make_vector({3, 2, 4}, *types.find(MPI_INT), CallForm::kSmall, &vector).ok());
  const std::vector<WindowRun> runs = runs_of(*vector, 2, 100);
  const std::vector<WindowRun> dense = runs_of(*types.find(MPI_INT), 5, 100);
  ASSERT_EQ(dense.size(), 1U);
  EXPECT_EQ(dense[0].offset, 100);
  EXPECT_EQ(dense[0].size_bytes, 20U);

  std::vector<int> memory(100, -1);
  for (int i = 0; i < 100; ++i) memory[static_cast<std::size_t>(i)] = i;
  const DataView view = runs_view(reinterpret_cast<std::byte*>(memory.data()), runs);
  const DataView typed = typed_view(*vector, memory.data() + 25, 2);
  ASSERT_EQ(view.size_bytes, typed.size_bytes);
  std::vector<std::byte> packed(view.size_bytes);
  std::vector<std::byte> expected(view.size_bytes);
  view.pack(packed.data());
  typed.pack(expected.data());
  EXPECT_EQ(packed, expected);
}

TEST(WindowRuns, APartOfThePackedBytesIsWrittenAlone) {
  std::vector<std::byte> memory(20, std::byte{0});
  const std::vector<std::byte> packed(8, std::byte{1});
  const DataView view = runs_view(memory.data(), {{2, 3, 2, 5}, {15, 2, 1, 0}});
  ASSERT_EQ(view.size_bytes, 8U);
  view.unpack(packed.data(), 5);
  std::vector<std::byte> expected(20, std::byte{0});
  for (const std::size_t i : {2U, 3U, 4U, 7U, 8U}) expected[i] = std::byte{1};
  EXPECT_EQ(memory, expected);
  std::size_t visited = 0;
  view.layout->visit_runs(memory.data(), 1, 5,
                          [&](const EvenRuns& run) { visited += run.size_bytes * run.count; });
  EXPECT_EQ(visited, 5U);
}

TEST(Accumulation, FindsTheUnitOfDerivedDatatypes) {
  PredefinedTypes types;
  Ref<Datatype> vector;
  Ref<Datatype> nested;
  Ref<Datatype> mixed;
  ASSERT_TRUE(make_vector({3, 2, 4}, *types.find(MPI_DOUBLE_INT), CallForm::kSmall, &vector).ok());
  ASSERT_TRUE(make_contiguous(2, *vector, CallForm::kSmall, &nested).ok());
  EXPECT_EQ(unit_of(*nested, types)->handle(), MPI_DOUBLE_INT);
  const std::vector<MPI_Count> ones{1, 1};
  const std::vector<MPI_Count> places{0, 8};
  const std::vector<Datatype*> parts{types.find(MPI_INT), types.find(MPI_FLOAT)};
  ASSERT_TRUE(make_struct(ones, places, parts, CallForm::kSmall, &mixed).ok());
  EXPECT_EQ(unit_of(*mixed, types), nullptr);
}

// Pairs have gaps in memory and none when they are packed; memory of windows need not be aligned.
TEST(Accumulation, CombinesPairsAndMemoryThatIsNotAligned) {
  PredefinedTypes types;
  const PredefinedOperators operators;
  struct Pair {
    double value;
    int index;
  };
  std::vector<Pair> pairs{{1.0, 1}, {5.0, 2}};
  const std::vector<Pair> others{{2.0, 10}, {3.0, 20}};
  Datatype& pair = *types.find(MPI_DOUBLE_INT);
  std::vector<std::byte> operand(24);
  pair.pack(others.data(), 2, operand.data());
  std::vector<std::byte> before(24);
  WindowControl control;
  accumulate({*operators.find(MPI_MAXLOC), pair}, operand.data(), typed_view(pair, pairs.data(), 2),
             before.data(), &control);
  EXPECT_EQ(pairs[0].index, 10);
  EXPECT_EQ(pairs[1].index, 2);
  double first = 0;
  std::memcpy(&first, before.data(), sizeof first);
  EXPECT_EQ(first, 1.0);
  EXPECT_EQ(control.accumulating, 0U);

  std::vector<std::byte> memory(17);
  const double value = 4.0;
  std::memcpy(memory.data() + 1, &value, sizeof value);
  accumulate({*operators.find(MPI_PROD), *types.find(MPI_DOUBLE)}, reinterpret_cast<const std::byte*>(&value),
             DataView::of_bytes(memory.data() + 1, sizeof value), nullptr, &control);
  std::memcpy(&first, memory.data() + 1, sizeof first);
  EXPECT_EQ(first, 16.0);
}

TEST(Accumulation, ReplacesNothingWithoutAnOperand) {
  PredefinedTypes types;
  const PredefinedOperators operators;
  int word = 7;
  int before = 0;
  const DataView target = DataView::of_bytes(&word, sizeof word);
  accumulate({*operators.find(MPI_NO_OP), *types.find(MPI_INT)}, nullptr, target, bytes(before), nullptr);
  EXPECT_EQ(word, 7);
  EXPECT_EQ(before, 7);
  const int wrong = 6;
  const int desired = 9;
  compare_and_swap(reinterpret_cast<const std::byte*>(&wrong), reinterpret_cast<const std::byte*>(&desired),
                   target, bytes(before), nullptr);
  EXPECT_EQ(word, 7);
  int right = 7;
  compare_and_swap(bytes(right), reinterpret_cast<const std::byte*>(&desired), target, bytes(before),
                   nullptr);
  EXPECT_EQ(word, 9);
}

// Elements of several datatypes are combined as bytes; none is cut.
TEST(Accumulation, PartsHaveWholeElements) {
  PredefinedTypes types;
  const PredefinedOperators operators;
  const ReductionOperator& replace = *operators.find(MPI_REPLACE);
  EXPECT_EQ(part_bytes({replace, *types.find(MPI_BYTE), 12}) % 12, 0U);
  EXPECT_GT(part_bytes({replace, *types.find(MPI_BYTE), 12}), 60'000U);
  EXPECT_EQ(part_bytes({replace, *types.find(MPI_BYTE), 1'000'000}), 1'000'000U);
  EXPECT_EQ(part_bytes({replace, *types.find(MPI_BYTE), Accumulation::kAllBytes}), SIZE_MAX);
  EXPECT_EQ(part_bytes({replace, *types.find(MPI_DOUBLE_INT)}) % 12, 0U);
}

TEST(Accumulation, LargeMemoryWithGapsIsCombinedPartByPart) {
  PredefinedTypes types;
  const PredefinedOperators operators;
  constexpr int kBlocks = 30'000;
  Ref<Datatype> vector;
  ASSERT_TRUE(make_vector({kBlocks, 3, 5}, *types.find(MPI_INT), CallForm::kSmall, &vector).ok());
  std::vector<int> memory(5 * kBlocks);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int>(i);
  const std::vector<int> untouched = memory;
  const std::vector<int> operand(3 * kBlocks, 7);
  std::vector<int> before(3 * kBlocks);
  WindowControl control;
  accumulate({*operators.find(MPI_SUM), *types.find(MPI_INT)},
             reinterpret_cast<const std::byte*>(operand.data()), typed_view(*vector, memory.data(), 1),
             reinterpret_cast<std::byte*>(before.data()), &control);
  EXPECT_EQ(control.accumulating, 0U);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    ASSERT_EQ(memory[i], untouched[i] + (i % 5 < 3 ? 7 : 0)) << i;
    if (i % 5 < 3) {
      ASSERT_EQ(before[i / 5 * 3 + i % 5], untouched[i]) << i;
    }
  }
}

TEST(WindowControl, TheHolderStepsAsideForOneThatWaits) {
  WindowControl control;
  bool has_come = false;
  AccumulateLock lock(control);
  lock.step_aside();
  std::thread other([&] {
    const AccumulateLock waits(control);
    has_come = true;
  });
  const std::atomic_ref num_waiting(control.num_waiting);
  while (num_waiting.load() == 0) std::this_thread::yield();
  // `has_come` changes under the lock alone. One call is enough unless the other thread gets no processor for milliseconds.
  for (int i = 0; i < 1000 && !has_come; ++i) lock.step_aside();
  EXPECT_TRUE(has_come);
  other.join();
  EXPECT_EQ(control.num_waiting, 0U);
}

TEST(WindowControl, AnExclusiveLockExcludesAllOthers) {
  WindowControl control;
  EXPECT_TRUE(AccessWord::try_lock(control, false, 3));
  EXPECT_TRUE(AccessWord::try_lock(control, false, 3));
  EXPECT_FALSE(AccessWord::try_lock(control, true, 3));
  AccessWord::unlock(control, false, 3);
  EXPECT_FALSE(AccessWord::try_lock(control, true, 3));
  AccessWord::unlock(control, false, 3);
  EXPECT_EQ(AccessWord::holder(control.access), -1);
  EXPECT_TRUE(AccessWord::try_lock(control, true, 3));
  EXPECT_EQ(AccessWord::holder(control.access), 3);
  EXPECT_FALSE(AccessWord::try_lock(control, false, 3));
  EXPECT_FALSE(AccessWord::try_lock(control, true, 3));
  AccessWord::unlock(control, true, 3);
  EXPECT_EQ(control.access, 0U);
}

TEST(WindowControl, AccumulatesOfSeveralThreadsLoseNothing) {
  WindowControl control;
  long sum = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 2000; ++k) {
        const AccumulateLock lock(control);
        ++sum;
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(sum, 8000);
}

}  // namespace
}  // namespace weft::mpi
