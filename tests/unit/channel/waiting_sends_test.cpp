#include "models/channel/waiting_sends.h"

#include <gtest/gtest.h>

namespace weft::channel {
namespace {

TEST(WaitingSends, SendsLeaveInTheirOrderWithWhatTheyHold) {
  WaitingSends sends;
  EXPECT_TRUE(sends.empty());
  sends.push(WaitingSend{{}, nullptr, {}, 100});
  sends.push(WaitingSend{{}, nullptr, {}, 20});
  EXPECT_EQ(sends.size(), 2U);
  EXPECT_EQ(sends.held_bytes(), 120);
  EXPECT_EQ(sends.pop().held_bytes, 100);
  EXPECT_EQ(sends.held_bytes(), 20);
  EXPECT_EQ(sends.pop().held_bytes, 20);
  EXPECT_EQ(sends.held_bytes(), 0);
  EXPECT_TRUE(sends.empty());
}

}  // namespace
}  // namespace weft::channel
