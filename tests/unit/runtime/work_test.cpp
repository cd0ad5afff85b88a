#include "weft/runtime/work.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::runtime {
namespace {

TEST(WorkQueue, FirstInFirstOut) {
  WorkQueue queue;
  Work a;
  Work b;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
  queue.push(&a);
  queue.push(&b);
  EXPECT_EQ(queue.pop(), &a);
  queue.push(&a);
  EXPECT_EQ(queue.pop(), &b);
  EXPECT_EQ(queue.pop(), &a);
  EXPECT_TRUE(queue.empty());
}

TEST(WorkQueue, PrioritiesGoBeforeAndAfter) {
  WorkQueue queue;
  Work normal;
  Work urgent;
  Work more_urgent;
  Work also_urgent;
  Work later;
  queue.push(&later, 5);
  queue.push(&normal, 0);
  queue.push(&urgent, -1);
  queue.push(&also_urgent, -1);
  queue.push(&more_urgent, -2);
  std::vector<Work*> order;
  while (Work* work = queue.pop()) order.push_back(work);
  EXPECT_EQ(order, (std::vector<Work*>{&more_urgent, &urgent, &also_urgent, &normal, &later}));
}

}  // namespace
}  // namespace weft::runtime
