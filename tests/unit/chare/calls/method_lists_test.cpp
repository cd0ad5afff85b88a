// The lists of a chare that give entry methods post entry methods (payload.h) and conditions (when.h).
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <type_traits>

#include "weft/chare/chare.h"
#include "weft/chare/payload.h"
#include "weft/chare/when.h"

namespace weft::chare {
namespace {

struct Listed {
  void posted(int, Payload<double>);
  void post_it(int, ReceiveBuffer<double>&);
  void conditional(int);
  bool is_current(int) const;
  void twice(int);
  void plain(int);

  using PostEntryMethods = chare::PostEntryMethods<Post<&Listed::posted, &Listed::post_it>>;
  using WhenConditions = chare::WhenConditions<When<&Listed::conditional, &Listed::is_current>,
                                               When<&Listed::twice, &Listed::is_current>,
                                               When<&Listed::twice, &Listed::is_current>>;
};
struct Unlisted {
  void plain(int);
};

TEST(MethodLists, PostEntryMethodsAreFoundByTheirEntryMethod) {
  using payload_detail::Constant;
  using payload_detail::PostOf;
  static_assert(std::is_same_v<PostOf<Listed, &Listed::posted>::Found, Constant<&Listed::post_it>>);
  static_assert(std::is_void_v<PostOf<Listed, &Listed::plain>::Found>);
  static_assert(std::is_void_v<PostOf<Unlisted, &Unlisted::plain>::Found>);
}

TEST(MethodLists, APostEntryMethodTakesReceiveBuffersForPayloads) {
  using payload_detail::PostArguments;
  static_assert(std::is_same_v<PostArguments<std::tuple<int, Payload<double>, std::string>>::Type,
                               std::tuple<int, ReceiveBuffer<double>, std::string>>);
  static_assert(std::is_same_v<PostArguments<std::tuple<>>::Type, std::tuple<>>);
}

TEST(MethodLists, ConditionsAreFoundAndCounted) {
  using when_detail::ConditionOf;
  static_assert(std::is_same_v<ConditionOf<Listed, &Listed::conditional>::Found,
                               payload_detail::Constant<&Listed::is_current>>);
  static_assert(ConditionOf<Listed, &Listed::conditional>::kCount == 1);
  static_assert(ConditionOf<Listed, &Listed::twice>::kCount == 2);  // which entry.h refuses
  static_assert(std::is_void_v<ConditionOf<Listed, &Listed::plain>::Found>);
  static_assert(ConditionOf<Unlisted, &Unlisted::plain>::kCount == 0);
}

}  // namespace
}  // namespace weft::chare
