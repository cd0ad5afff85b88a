// Sparse arrays: elements that change the array in a gathered call, which comes to another PE later than the news of the change.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

constexpr int kNumPes = 10;
// A broadcast from PE 0 reaches PE 9 through PE 1.
constexpr int kLast = 9;
constexpr int kOnTheWay = 1;

using Results = std::vector<std::uint64_t>;

// Elements 9, 19 and 29 have their home on PE 9.
struct Leaf : Chare<Leaf> {
  std::uint64_t stay() { return linear_index(); }
  std::uint64_t leave() {
    if (pe() == 0) remove_self();
    return linear_index();
  }
  std::uint64_t grow() {
    if (pe() == 0) static_cast<void>(proxy().insert_on(kLast, 29));
    return linear_index();
  }
  std::uint64_t split() {
    grow();
    return leave();
  }
};

class LateBroadcast : public ::testing::Test {
 protected:
  // Element 9 is on PE 0, element 19 on PE 9. The method is called, and only PEs 0 and 9 make progress, until what it does in
  // the element of PE 0 is known to PE 9. Then the call reaches PE 9.
  template <auto Method>
  void call() {
    Runtime& first = job_.runtime(0);
    first.spawn(main<Method>(first), "main on PE 0");
    ASSERT_EQ(job_.run_until([this] { return begin_.has_value(); }), "");
    begin_->set();
    for (int turn = 0; turn < 100; ++turn) {
      for (int pe : {0, kLast}) job_.runtime(pe).step();
    }
    ASSERT_FALSE(has_ended_) << "PE " << kOnTheWay << " has not forwarded the call";
    ASSERT_EQ(job_.run_until([this] { return has_ended_; }), "");
  }

  template <auto Method>
  Task<> main(Runtime& runtime) {
    auto leaves = Array<Leaf>::create_sparse(runtime, Shape{100}.with_map(Map::kRoundRobin));
    co_await leaves.insert_on(0, 9);
    co_await leaves.insert_on(kLast, 19);
    co_await leaves.done_inserting();
    Future<> begin(runtime);
    begin_ = begin;
    co_await begin;
    during_ = co_await leaves.template call<Method>();
    co_await runtime.quiescence();
    try {
      co_await leaves.template call<&Leaf::stay>();
    } catch (const Error& error) {
      refused_ = error.what();
    }
    co_await leaves.done_inserting();
    after_ = co_await leaves.template call<&Leaf::stay>();
    has_ended_ = true;
  }

  testing::InProcessJob job_{kNumPes};
  std::optional<Future<>> begin_;
  Results during_;
  std::string refused_;
  Results after_;
  bool has_ended_ = false;
};

TEST_F(LateBroadcast, AnElementThatRemovesItselfIsNotMissedByItsHome) {
  call<&Leaf::leave>();
  EXPECT_EQ(during_, (Results{9, 19}));
  EXPECT_TRUE(test_support::says(refused_, "inserted or removed"));
  EXPECT_EQ(after_, (Results{19}));
}

TEST_F(LateBroadcast, AnElementThatIsInsertedHasNoPart) {
  call<&Leaf::grow>();
  EXPECT_EQ(during_, (Results{9, 19}));
  EXPECT_TRUE(test_support::says(refused_, "inserted or removed"));
  EXPECT_EQ(after_, (Results{9, 19, 29}));
}

TEST_F(LateBroadcast, BothAtOnce) {
  call<&Leaf::split>();
  EXPECT_EQ(during_, (Results{9, 19}));
  EXPECT_TRUE(test_support::says(refused_, "inserted or removed"));
  EXPECT_EQ(after_, (Results{19, 29}));
}

}  // namespace
}  // namespace weft::chare
