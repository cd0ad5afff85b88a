#include "weft/runtime/registry.h"

#include <gtest/gtest.h>

namespace weft::runtime {
namespace {

struct Info {
  std::string_view name;
  std::uint32_t id = 0;
};

TEST(Registry, NumbersFollowNamesNotTheOrderOfRegistration) {
  static Info b{"b"};
  static Info a{"a"};
  static Info c{"c"};
  Registry<Info>::add(&b);
  Registry<Info>::add(&a);
  EXPECT_EQ(Registry<Info>::find(0), &a);
  EXPECT_EQ(Registry<Info>::find(1), &b);
  const auto before = registry_fact<Info>("infos");
  Registry<Info>::add(&c);
  EXPECT_EQ(c.id, 0u) << "not numbered yet";
  EXPECT_EQ(Registry<Info>::find(2), &c);
  EXPECT_EQ(c.id, 2u);
  EXPECT_EQ(Registry<Info>::find(3), nullptr);
  EXPECT_NE(registry_fact<Info>("infos"), before) << "another program";
}

struct Ring {
  void token(int);
};

TEST(Registry, NamesAreThoseOfTheSource) {
  EXPECT_NE(value_name<&Ring::token>().find("Ring::token"), std::string_view::npos)
      << value_name<&Ring::token>();
  EXPECT_EQ(type_name<int>(), "int");
}

}  // namespace
}  // namespace weft::runtime
