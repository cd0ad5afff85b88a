// Targets of reductions whose type says what they take: the compiler refuses contributions of another type.
//
// A TargetOf<T> takes a T: target_of(future) and target<&T::method>() give one. As a plain Target, in a variable of that type for
// example, it is not checked any more.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/runtime/reduction.h"
#include "weft/runtime/target.h"

namespace weft::runtime {

// `T`: void for a target that takes nothing.
template <class T>
struct TargetOf : Target {
  TargetOf() = default;
  explicit TargetOf(Target target) : Target(std::move(target)) {}
};

namespace target_detail {

// Whether a packed `Given` unpacks as a `Taken`. Integers of one size, such as long and long long, do.
template <class Taken, class Given>
inline constexpr bool kAgree = std::is_same_v<Taken, Given>;
template <std::integral Taken, std::integral Given>
inline constexpr bool kAgree<Taken, Given> =
    std::is_same_v<Taken, Given> ||
    (sizeof(Taken) == sizeof(Given) && std::is_signed_v<Taken> == std::is_signed_v<Given> &&
     !std::is_same_v<Taken, bool> && !std::is_same_v<Given, bool>);
template <class Taken, class Given>
inline constexpr bool kAgree<std::vector<Taken>, std::vector<Given>> = kAgree<Taken, Given>;

// kValue: as much as is contributed. kList: a std::vector of it.
enum class Takes : std::uint8_t { kAnything, kValue, kList };

// Its parameters are the two types that the compiler names if they do not fit.
template <class Contributed, class Taken>
constexpr Takes expect_fit() {
  if constexpr (std::is_void_v<Contributed>) {
    static_assert(std::is_void_v<Taken>,
                  "the target takes a value, and none is given: the compiler names the type, Taken");
    return Takes::kValue;
  } else if constexpr (kAgree<Taken, std::vector<Contributed>>) {
    return Takes::kList;
  } else {
    static_assert(kAgree<Taken, Contributed>,
                  "the target of the contribution takes another type than the one that is contributed (or, "
                  "with kGather, than a std::vector of it): the compiler names both, Contributed and Taken");
    return Takes::kValue;
  }
}

[[noreturn]] void refuse_reducer(Takes takes);

}  // namespace target_detail

// The parameter of a function that gives a target a `Contributed`, or with kGather a std::vector of it; void: nothing. It is made of a
// TargetOf, which is checked, or of a Target, which is not.
template <class Contributed>
class TargetFor {
 public:
  TargetFor(const Target& target) : target_(target) {}  // implicit, as the next one
  template <class Taken>
  TargetFor(const TargetOf<Taken>& target)
      : target_(target), takes_(target_detail::expect_fit<Contributed, Taken>()) {}

  const Target& target() const { return target_; }
  // Throws Error(kInvalidArgument) if the reducer gives a list and the target takes one value, or the other way round.
  const Target& target(Reducer reducer) const {
    if (takes_ != target_detail::Takes::kAnything &&
        (takes_ == target_detail::Takes::kList) != (reducer == Reducer::kGather)) [[unlikely]]
      target_detail::refuse_reducer(takes_);
    return target_;
  }

 private:
  const Target& target_;
  target_detail::Takes takes_ = target_detail::Takes::kAnything;
};

}  // namespace weft::runtime
