#include "weft/balance/register_strategy.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "balance/strategy_table.h"
#include "snapshots.h"

namespace weft::balance {
namespace {

// All objects to PE 0.
Placement gather(const Snapshot& snapshot) { return Placement(snapshot.objects.size(), 0); }

// Ends the registration of a test, which later tests in the process must not see.
struct Registered {
  explicit Registered(std::string name_in, StrategyFunction function = &gather) : name(std::move(name_in)) {
    register_strategy(name, std::move(function));
  }
  ~Registered() { unregister_strategy(name); }
  std::string name;
};

std::string refusal(const std::string& name, StrategyFunction function = &gather) {
  try {
    register_strategy(name, std::move(function));
  } catch (const base::Error& error) {
    EXPECT_EQ(error.code(), base::StatusCode::kInvalidArgument);
    return error.what();
  }
  unregister_strategy(name);
  return "";
}

TEST(RegisteredStrategies, AreMadeByTheirName) {
  EXPECT_FALSE(is_strategy("gather"));
  {
    const Registered registered("gather");
    EXPECT_TRUE(is_strategy("gather"));
    auto strategy = make_strategy("gather");
    ASSERT_TRUE(strategy.ok());
    EXPECT_EQ((*strategy)->name(), "gather");
    EXPECT_EQ((*strategy)->place(ramp(2, 2, 2)), (Placement{0, 0, 0, 0}));
  }
  EXPECT_FALSE(make_strategy("gather").ok());
}

TEST(RegisteredStrategies, ReadCommunicationIfTheySaySo) {
  const Registered ignores("ignores");
  EXPECT_FALSE(reads_communication("ignores"));
  register_strategy("reads", &gather, Communication::kRead);
  EXPECT_TRUE(reads_communication("reads"));
  unregister_strategy("reads");
  EXPECT_FALSE(reads_communication("reads"));
}

TEST(RegisteredStrategies, AreListedInErrorsAfterThoseOfWeft) {
  const std::string before = strategy_names();
  const Registered second("b_strategy");
  const Registered first("a_strategy");
  EXPECT_EQ(strategy_names(), before + ", a_strategy, b_strategy");
  const auto unknown = make_strategy("c_strategy");
  EXPECT_NE(unknown.status().message().find("a_strategy, b_strategy"), std::string_view::npos);
}

TEST(RegisteredStrategies, NamesThatAreNoneOrTakenAreRefused) {
  for (const std::string name : {"", "two words", "7", "file.py:place", "caf\xc3\xa9"}) {
    EXPECT_NE(refusal(name).find("letters, digits and underscores"), std::string::npos) << name;
  }
  EXPECT_NE(refusal(std::string(65, 'a')).find("letters, digits and underscores"), std::string::npos);
  EXPECT_EQ(refusal(std::string(64, 'a')), "");
  EXPECT_NE(refusal("greedy").find("Weft has a strategy of this name"), std::string::npos);
  const Registered registered("Mine_2");
  EXPECT_NE(refusal("Mine_2").find("the program has registered"), std::string::npos);
  EXPECT_NE(refusal("other", nullptr).find("the function is empty"), std::string::npos);
}

}  // namespace
}  // namespace weft::balance
