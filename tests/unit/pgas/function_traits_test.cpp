#include "weft/pgas/function_traits.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <type_traits>

#include "weft/pgas/dist_object.h"
#include "weft/pgas/team.h"
#include "weft/pgas/world.h"

namespace weft::pgas::rpc_detail {
namespace {

TEST(FunctionTraits, ParametersAreStoredByValue) {
  using Plain = FunctionTraits<int (*)(int, const std::string&)>;
  static_assert(std::is_same_v<Plain::Arguments, std::tuple<int, std::string>>);
  static_assert(std::is_same_v<Plain::Result, int> && std::is_same_v<Plain::Value, int>);
  static_assert(std::is_same_v<Plain::Context, void> && !Plain::kTakesMutableReference);
  using Nothing = FunctionTraits<void (*)() noexcept>;
  static_assert(Nothing::kNumArguments == 0 && std::is_same_v<Nothing::Result, void>);
}

TEST(FunctionTraits, AFirstParameterThatIsAContextIsNoArgument) {
  using OfWorld = FunctionTraits<double (*)(World&, float)>;
  static_assert(std::is_same_v<OfWorld::Context, World&>);
  static_assert(std::is_same_v<OfWorld::Arguments, std::tuple<float>>);
  using OfTeam = FunctionTraits<double (*)(const Team&, DistObject<int>&)>;
  static_assert(std::is_same_v<OfTeam::Context, const Team&>);
  // A distributed object is named in the call, so a reference to it is not a reference to the caller's value.
  static_assert(std::is_same_v<OfTeam::Arguments, std::tuple<ObjectArgument<int>>>);
  static_assert(kIsObjectArgument<ObjectArgument<int>> && !OfTeam::kTakesMutableReference);
}

TEST(FunctionTraits, TasksGiveTheirValueAndMutableReferencesAreFound) {
  using Later = FunctionTraits<runtime::Task<int> (*)(std::string&)>;
  static_assert(Later::kIsTask && std::is_same_v<Later::Value, int>);
  static_assert(Later::kTakesMutableReference);
}

TEST(FunctionTraits, LambdasWithoutCapturesAreFunctions) {
  constexpr auto kTwice = [](int value) { return 2L * value; };
  using Lambda = FunctionTraits<std::remove_const_t<decltype(kTwice)>>;
  static_assert(std::is_same_v<Lambda::Arguments, std::tuple<int>> && std::is_same_v<Lambda::Result, long>);
}

}  // namespace
}  // namespace weft::pgas::rpc_detail
