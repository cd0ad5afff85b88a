// Checkpoints of sparse arrays.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/chare/saved_chares.h"

namespace weft::chare::saved {

struct Leaf : Chare<Leaf> {
  explicit Leaf(int value_in) : value(value_in) {}
  explicit Leaf(Moved) {}
  void pup(Pup& p) { p | value | root | is_ready; }
  Task<> created() {
    co_await yield_now(runtime());
    is_ready = true;
  }

  int get() { return is_ready ? value : -1; }
  void set(int value_in) { value = value_in; }
  std::uint64_t where() { return linear_index(); }
  int pe_now() { return pe(); }
  void go(int to_pe) { migrate(to_pe); }
  void know(ElementProxy<Leaf> root_in) { root = root_in; }
  Task<int> ask_root() { co_return co_await root.call<&Leaf::get>(); }
  Task<int> sum(int part) { co_return co_await allreduce(part, Reducer::kSum); }
  void give(Section<Leaf> section, Future<int> sum) {
    contribute(value, Reducer::kSum, target_of(sum), section);
  }
  void give_alone(Future<int> sum) { contribute(value, Reducer::kSum, target_of(sum)); }

  int value = 0;
  bool is_ready = false;
  ElementProxy<Leaf> root;
};

namespace {

int from_the_end(const Index& index, const Shape& shape, int num_pes) {
  return (shape.extent(0) - 1 - index[0]) % num_pes;
}

constexpr std::uint64_t kIndices[] = {3, 500, 501, 999'999'999};

std::vector<std::uint64_t> all_indices() { return {std::begin(kIndices), std::end(kIndices)}; }

Task<Array<Leaf>> fill(Runtime& runtime, Shape shape) {
  auto leaves = Array<Leaf>::create_sparse(runtime, shape);
  for (const std::uint64_t index : kIndices)
    co_await leaves.insert(static_cast<int>(index), static_cast<int>(index % 1000));
  co_await leaves.insert(77, 7);
  co_await leaves.done_inserting();
  co_await leaves[77].remove();
  for (int i = 0; i < 4; ++i) {
    const auto leaf = leaves[static_cast<int>(kIndices[i])];
    leaf.template send<&Leaf::know>(leaves[3]);
    leaf.template send<&Leaf::go>((runtime.pe() + i) % runtime.num_pes());
  }
  co_await leaves.done_inserting();
  co_return leaves;
}

// A restored array does all that one which was filled does.
Task<> use(Runtime& runtime, Array<Leaf> leaves) {
  EXPECT_EQ(leaves.num_elements(), 4U);
  const std::vector<std::uint64_t> found = co_await leaves.call<&Leaf::where>();
  EXPECT_EQ(found, all_indices());
  const std::vector<int> values = co_await leaves.call<&Leaf::get>();
  EXPECT_EQ(values, (std::vector<int>{3, 500, 501, 999}));
  for (const std::uint64_t index : kIndices) {
    const auto leaf = leaves[static_cast<int>(index)];
    EXPECT_EQ(co_await leaf.call<&Leaf::pe_now>(), leaves.shape().home(index, runtime.num_pes()));
    EXPECT_EQ(co_await leaf.call<&Leaf::ask_root>(), 3);
  }
  EXPECT_TRUE(says(co_await error_of(leaves[77].call<&Leaf::get>()), "finds no element"));
  EXPECT_TRUE(says(co_await error_of(leaves.insert(500, 1)), "it exists already"));
  for (int round = 1; round < 4; ++round) {
    const std::vector<int> sums = co_await leaves.call<&Leaf::sum>(round);
    EXPECT_EQ(sums, std::vector<int>(4, 4 * round));
  }
  // Elements come, go and move as before.
  co_await leaves.insert(77, 8);
  EXPECT_EQ(co_await leaves[77].call<&Leaf::get>(), 8);  // created() has run
  co_await leaves[501].remove();
  for (int pe = 0; pe < runtime.num_pes(); ++pe) {
    co_await leaves[500].call<&Leaf::go>(pe);
    EXPECT_EQ(co_await leaves[500].call<&Leaf::pe_now>(), pe);
  }
  co_await leaves.done_inserting();
  EXPECT_EQ(leaves.num_elements(), 4U);
  const std::vector<int> changed = co_await leaves.call<&Leaf::get>();
  EXPECT_EQ(changed, (std::vector<int>{3, 8, 500, 999}));
  const std::vector<int> sums = co_await leaves.call<&Leaf::sum>(2);
  EXPECT_EQ(sums, std::vector<int>(4, 8));
  co_await leaves.insert(501, 9);
  co_await leaves.done_inserting();
  EXPECT_EQ(leaves.num_elements(), 5U);
}

TEST(CheckpointSparse, RestoresTheElementsOnAnyNumberOfPes) {
  const Shape bounds{2'000'000'000};
  for (const Shape& shape : {bounds, bounds.with_map(Map::kRoundRobin), bounds.with_map<&from_the_end>()}) {
    for (const int saved_on : {1, 3}) {
      const TemporaryFolder folder;
      {
        InProcessJob job(saved_on);
        EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
          const Array<Leaf> leaves = co_await fill(runtime, shape);
          co_await checkpoint(runtime, folder.path(), leaves);
          co_await leaves[3].call<&Leaf::set>(4);  // the job goes on
          EXPECT_EQ((co_await leaves.call<&Leaf::get>())[0], 4);
        }),
                  "");
      }
      for (const int num_pes : {1, 2, 4}) {
        SCOPED_TRACE(std::to_string(saved_on) + " to " + std::to_string(num_pes));
        InProcessJob job(num_pes);
        EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
          Array<Leaf> leaves;
          co_await restore(runtime, folder.path(), leaves);
          co_await use(runtime, leaves);
          // Saved again.
          co_await leaves[501].remove();
          co_await leaves.done_inserting();
          co_await checkpoint(runtime, folder.path(), leaves);
          Array<Leaf> again;
          co_await restore(runtime, folder.path(), again);
          const std::vector<int> values = co_await again.call<&Leaf::get>();
          EXPECT_EQ(values, (std::vector<int>{3, 8, 500, 999}));
          co_await leaves[77].remove();
          co_await leaves.insert(501, 501);
          leaves[501].send<&Leaf::know>(leaves[3]);
          for (const auto& [index, value] : {std::pair(3, 3), std::pair(999'999'999, 999)})
            leaves[index].send<&Leaf::set>(value);
          co_await leaves.done_inserting();
          co_await checkpoint(runtime, folder.path(), leaves);  // for the next number of PEs
        }),
                  "");
      }
    }
  }
}

TEST(CheckpointSparse, AnArrayWithoutElementsIsRestored) {
  const TemporaryFolder folder;
  for (const bool saves : {true, false}) {
    InProcessJob job(2);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      Array<Leaf> leaves;
      if (saves) {
        leaves = Array<Leaf>::create_sparse(runtime, {100, 100});
        co_await leaves.done_inserting();
        co_await checkpoint(runtime, folder.path(), leaves);
      } else {
        co_await restore(runtime, folder.path(), leaves);
      }
      EXPECT_EQ(leaves.num_elements(), 0U);
      EXPECT_EQ((co_await leaves.call<&Leaf::get>()).size(), 0U);
      const Index one{5, 6};
      co_await leaves.insert(one, 56);
      co_await leaves.done_inserting();
      const std::vector<int> values = co_await leaves.call<&Leaf::get>();
      EXPECT_EQ(values, std::vector<int>{56});
    }),
              "");
  }
}

TEST(CheckpointSparse, SectionsAndReductionsBeginAnew) {
  const TemporaryFolder folder;
  for (const int num_pes : {3, 2}) {
    InProcessJob job(num_pes);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      Array<Leaf> leaves;
      Section<Leaf> some;
      if (num_pes == 2) {
        co_await restore(runtime, folder.path(), leaves, some);
      } else {
        leaves = co_await fill(runtime, 2'000'000'000);
        some = leaves.section({501, 3});
        static_cast<void>(co_await leaves.call<&Leaf::sum>(1));
      }
      for (int round = 0; round < 3; ++round) {
        Future<int> sum(runtime);
        some.send<&Leaf::give>(some, sum);
        EXPECT_EQ(co_await sum, 504);
        Future<int> of_all(runtime);
        leaves.send<&Leaf::give_alone>(of_all);
        EXPECT_EQ(co_await of_all, 3 + 500 + 501 + 999);
      }
      if (num_pes == 3) co_await checkpoint(runtime, folder.path(), leaves, some);
    }),
              "");
  }
}

TEST(CheckpointSparse, ElementsThatAreNotCountedAreRefused) {
  const TemporaryFolder folder;
  InProcessJob job(3);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    const auto leaves = Array<Leaf>::create_sparse(runtime, {1000});
    const auto error = [&]() -> Task<std::string> {
      co_return co_await error_of(checkpoint(runtime, folder.path(), leaves));
    };
    const std::string expected = "were inserted or removed since they were counted; await done_inserting()";
    EXPECT_TRUE(says(co_await error(), expected));
    co_await leaves.insert_on(2, 5, 5);
    EXPECT_TRUE(says(co_await error(), expected));
    co_await leaves.done_inserting();
    EXPECT_EQ(co_await error(), "");
    co_await leaves.insert_on(1, 6, 6);
    EXPECT_TRUE(says(co_await error(), expected));
    co_await leaves.done_inserting();
    co_await leaves[5].remove();
    EXPECT_TRUE(says(co_await error(), expected));
    co_await leaves.done_inserting();
    EXPECT_EQ(co_await error(), "");
    co_await leaves.insert(7, 7);
    co_await leaves.done_inserting();
    Future<int> never(runtime);
    co_await leaves[6].call<&Leaf::give_alone>(never);
    EXPECT_TRUE(says(co_await error(), "have contributed to 1 reductions and others to 0"));
  }),
            "");
}

}  // namespace
}  // namespace weft::chare::saved
