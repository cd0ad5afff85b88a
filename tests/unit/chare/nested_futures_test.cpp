// Futures whose values hold futures, in the state of an element that moves.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "weft/weft.h"

#include "runtime/future_table.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

struct Node {
  int value = 0;
  std::vector<Future<Node>> next;
  void pup(Pup& p) { p | value | next; }
};

struct Graph : Chare<Graph> {
  void pup(Pup& p) { p | head; }

  void make_chain(int length) {
    head = Future<Node>(runtime());
    head.set({0, {}});
    for (int i = 1; i <= length; ++i) {
      Future<Node> one(runtime());
      one.set({i, {head}});
      head = one;
    }
  }
  // Each value holds the one before twice.
  void make_diamonds(int depth) {
    make_chain(0);
    for (int i = 1; i <= depth; ++i) {
      Future<Node> one(runtime());
      one.set({i, {head, head}});
      head = one;
    }
  }
  void go(int to_pe) { migrate(to_pe); }
  int where_now() { return pe(); }
  // Of the value, and of the one in it.
  Task<std::vector<int>> read(int depth) {
    std::vector<int> values;
    Future<Node> at = head;
    for (int i = 0; i < depth; ++i) {
      const Node node = co_await at;
      values.push_back(node.value);
      if (node.next.empty()) break;
      at = node.next.back();
    }
    co_return values;
  }

  Future<Node> head;
};

Task<> move(Runtime& runtime, Array<Graph> graph, int to_pe) {
  graph[0].send<&Graph::go>(to_pe);
  co_await runtime.quiescence();
  EXPECT_EQ(co_await graph[0].call<&Graph::where_now>(), to_pe);
}

TEST(NestedFutures, ValuesOfSixteenLevelsTravel) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    const auto graph = Array<Graph>::create(runtime, Shape(1).on_pe(0));
    for (const int length : {0, 1, 15}) {
      co_await graph[0].call<&Graph::make_chain>(length);
      for (const int to_pe : {1, 0, 1, 0}) {
        co_await move(runtime, graph, to_pe);
        std::vector<int> expected;
        for (int i = length; i >= 0; --i) expected.push_back(i);
        EXPECT_EQ(co_await graph[0].call<&Graph::read>(100), expected);
      }
    }
  }),
            "");
}

// Deeper and wider ones neither overflow the stack nor grow without a bound. Round ones: moving_copies.py, because C++ does not
// free them.
TEST(NestedFutures, ChainsAndDiamondsMove) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    const auto graph = Array<Graph>::create(runtime, Shape(1).on_pe(0));
    co_await graph[0].call<&Graph::make_chain>(5000);
    co_await move(runtime, graph, 1);
    const std::vector<int> chain = co_await graph[0].call<&Graph::read>(3);
    EXPECT_EQ(chain, (std::vector<int>{5000, 4999, 4998}));
    co_await move(runtime, graph, 0);
    co_await graph[0].call<&Graph::make_diamonds>(100);
    co_await move(runtime, graph, 1);
    const std::vector<int> diamonds = co_await graph[0].call<&Graph::read>(3);
    EXPECT_EQ(diamonds, (std::vector<int>{100, 99, 98}));
  }),
            "");
}

}  // namespace
}  // namespace weft::chare
