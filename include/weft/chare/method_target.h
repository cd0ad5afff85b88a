// The argument type of an entry method that is the target of a reduction. For the target() functions of proxies and sections; programs do not name
// this.
#pragma once

#include <cstddef>
#include <tuple>
#include <vector>

#include "weft/chare/entry.h"
#include "weft/chare/view.h"
#include "weft/runtime/typed_target.h"

namespace weft::chare::proxy_detail {

// The argument type of a method behind so many bound arguments, as a contribution packs it; void for nothing.
template <class Stored>
struct ContributedAs {
  using Type = Stored;
};
template <class T>
struct ContributedAs<argument_detail::View<T>> {
  using Type = std::vector<T>;
};
template <class Arguments, std::size_t kNumBound>
struct TakenBehind {
  static_assert(std::tuple_size_v<Arguments> <= kNumBound + 1,
                "the method takes more arguments than those that are bound and one result");
  using Type = void;
};
template <class Arguments, std::size_t kNumBound>
  requires(std::tuple_size_v<Arguments> == kNumBound + 1)
struct TakenBehind<Arguments, kNumBound> {
  using Type = typename ContributedAs<std::tuple_element_t<kNumBound, Arguments>>::Type;
};
// The method as the target of a reduction.
template <class T, auto Method, std::size_t kNumBound>
using TargetOfMethod =
    runtime::TargetOf<typename TakenBehind<typename EntryMethod<T, Method>::Arguments, kNumBound>::Type>;

}  // namespace weft::chare::proxy_detail
