// Combined sections: members of several collections of one class, with calls and reductions of their own.
//
//   const weft::CombinedSection all(walls, grid.slice({Range::one(0), Range::all()}), corners[0]);
//   all.send<&Cell::update>(x);                                   // every member
//   std::vector<double> v = co_await all.call<&Cell::get>();      // those of the first part, then those of the second, ...
//   contribute(value, Reducer::kSum, target, all);                // in a member: a reduction over all of them
//
// A value that travels in messages, as a Section; so are its rules. An element has one place, that of the first part with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weft/chare/combined_members.h"
#include "weft/chare/section.h"

namespace weft::chare {

template <class T>
class CombinedSection {
 public:
  // Without parts; nothing can be called on it.
  CombinedSection() = default;
  explicit CombinedSection(CombinedMembers::Pointer members) : members_(std::move(members)) {}
  // Each part is a section, a combined section, a proxy of a collection or of an element, or a vector of these. Throws
  // Error(kInvalidArgument) for a whole sparse array, because no PE knows its elements, and if there is no part.
  template <class First, class... More>
    requires(!std::is_same_v<std::decay_t<First>, CombinedMembers::Pointer>)
  explicit CombinedSection(const First& first, const More&... more) {
    const auto made = std::make_shared<CombinedMembers>();
    add(*made, first);
    (add(*made, more), ...);
    section_detail::expect_parts(made->parts().empty() ? nullptr : made.get());
    members_ = made;
  }
  // Not trivially copyable, as a proxy.
  CombinedSection(const CombinedSection& other) = default;
  CombinedSection& operator=(const CombinedSection& other) = default;

  // Throws Error(kInvalidArgument) if it has no parts.
  const CombinedMembers& members() const {
    section_detail::expect_parts(members_.get());
    return *members_;
  }
  const CombinedMembers::Pointer& shared_members() const { return members_; }
  std::uint64_t size() const { return members_ == nullptr ? 0 : members_->size(); }
  // The i-th member. Throws Error(kOutOfRange).
  ElementProxy<T> operator[](std::uint64_t i) const {
    if (i >= size()) section_detail::throw_no_member(i, size());
    const CombinedMembers::Member member = members_->at(i);
    return ElementProxy<T>(*member.collection, member.linear_index);
  }
  bool contains(const ElementProxy<T>& element) const {
    return members().position(element.collection(), element.linear_index()).has_value();
  }
  // Its sections: neighbouring ones are of two collections, and none is empty unless it is the only one.
  std::vector<Section<T>> parts() const {
    std::vector<Section<T>> sections;
    for (const CombinedMembers::Part& part : members().parts())
      sections.emplace_back(*part.collection, part.members);
    return sections;
  }

  // As Section::send() and Section::call(). The results are in the order of the members.
  template <auto Method, class... Args>
  auto send(Args&&... arguments) const {
    runtime::OperationState* sending = send_call<Method>({}, std::forward<Args>(arguments)...);
    if constexpr (EntryMethod<T, Method>::kHasPayload) return runtime::Operation(sending);
  }
  template <auto Method, class... Args>
  auto call(Args&&... arguments) const;

  // As Section::target().
  template <auto Method, class... Bound>
  proxy_detail::TargetOfMethod<T, Method, sizeof...(Bound)> target(const Bound&... bound) const {
    std::vector<base::SmallBytes> calls;
    for (const CombinedMembers::Part& part : members().parts()) {
      const EntryHeader header{part.collection->id(), 0, EntryMethod<T, Method>::info().id, 0, {}};
      calls.push_back(
          proxy_detail::pack_target<EntryMethod<T, Method>>(chares().runtime(), header, bound...));
    }
    return proxy_detail::TargetOfMethod<T, Method, sizeof...(Bound)>(
        chares().sections().target(members(), calls));
  }

  void pup(Pup& p) { pup_combined(p, members_); }

 private:
  static void add(CombinedMembers& to, const Section<T>& part) {
    to.add(part.collection(), part.shared_members());
  }
  static void add(CombinedMembers& to, const CombinedSection& part) { to.add(part.members()); }
  static void add(CombinedMembers& to, const CollectionProxy<T>& part) { to.add_all(part.collection()); }
  static void add(CombinedMembers& to, const ElementProxy<T>& part) {
    to.add(part.collection(), SectionMembers::of_list(part.collection(), {part.linear_index()}));
  }
  template <class Part>
  static void add(CombinedMembers& to, const std::vector<Part>& parts) {
    for (const Part& part : parts) add(to, part);
  }

  Chares& chares() const { return members().parts().front().collection->chares(); }
  template <auto Method, class... Args>
  runtime::OperationState* send_call(std::span<const ReplyTo> replies, Args&&... arguments) const {
    using Entry = EntryMethod<T, Method>;
    static_assert(std::tuple_size_v<typename Entry::Arguments> == sizeof...(Args),
                  "the method takes another number of arguments");
    Chares& chares = this->chares();
    // send() writes the collection and the reply of each part.
    runtime::MessagePtr message = proxy_detail::pack_call<typename Entry::Packing>(
        chares, {0, 0, Entry::info().id, 0, {}}, CallTo::kElement, std::forward<Args>(arguments)...);
    runtime::OperationState* sending = nullptr;
    if constexpr (Entry::kHasPayload) sending = runtime::report_sending(chares.runtime(), *message);
    return runtime::send_reported(sending,
                                  [&] { chares.sections().send(members(), replies, std::move(message)); });
  }

  CombinedMembers::Pointer members_;
};

template <class T, class... More>
CombinedSection(const Section<T>&, const More&...) -> CombinedSection<T>;
template <class T, class... More>
CombinedSection(const CombinedSection<T>&, const More&...) -> CombinedSection<T>;
template <class T, class... More>
CombinedSection(const CollectionProxy<T>&, const More&...) -> CombinedSection<T>;
template <class T, class... More>
CombinedSection(const ElementProxy<T>&, const More&...) -> CombinedSection<T>;
template <class T, class... More>
CombinedSection(const std::vector<Section<T>>&, const More&...) -> CombinedSection<T>;

namespace section_detail {

// The results of a call to a combined section, gathered for each part.
template <class One>
struct CombinedResults {
  explicit CombinedResults(const CombinedMembers& members)
      : values(members.size()), errors(members.parts().size()), num_missing(members.parts().size()) {}

  // Reads those of a part. Returns whether all are there.
  bool read(const CombinedMembers& members, std::size_t i, Pup& p) {
    const CombinedMembers::Part& part = members.parts()[i];
    const std::vector<std::uint64_t> places = part.members->places_by_index();
    errors[i] = read_gathered(
        p, [](std::uint64_t) {},
        [&](std::uint64_t k, Pup& from) {
          One value{};
          from | value;
          values.at(part.first + (places.empty() ? k : places.at(k))) = std::move(value);
        });
    return --num_missing == 0;
  }
  // The error of the first part that has one; null if no part has one.
  std::exception_ptr error() const {
    for (const std::exception_ptr& one : errors) {
      if (one) return one;
    }
    return nullptr;
  }

  std::vector<One> values;
  std::vector<std::exception_ptr> errors;  // by part
  std::size_t num_missing;
};

}  // namespace section_detail

// --- Implementation

template <class T>
template <auto Method, class... Args>
auto CombinedSection<T>::call(Args&&... arguments) const {
  using Value = typename EntryMethod<T, Method>::Value;
  static_assert(!payload_detail::kIsPayload<Value>,
                "the results of a section are gathered and cannot be payloads: call each element");
  using One = std::conditional_t<std::is_void_v<Value>, std::monostate, Value>;
  using Values = std::conditional_t<std::is_void_v<Value>, void, std::vector<One>>;
  Chares& chares = this->chares();
  runtime::Future<Values> result(chares.runtime());
  const auto results = std::make_shared<section_detail::CombinedResults<One>>(members());
  std::vector<ReplyTo> replies;
  for (std::size_t i = 0; i < members().parts().size(); ++i) {
    replies.push_back(chares.sections().expect_gather([result, results, i, members = members_](Pup& p) {
      const bool is_complete = results->read(*members, i, p);
      if (result.state()->is_set()) return;  // a member has failed, or the payloads did not reach a PE
      if (const std::exception_ptr error = results->error()) {
        result.set_error(error);
        return;
      }
      if (!is_complete) return;
      if constexpr (std::is_void_v<Value>) {
        result.set();
      } else {
        result.set(std::move(results->values));
      }
    }));
  }
  runtime::OperationState* sending = nullptr;
  try {
    sending = send_call<Method>(replies, std::forward<Args>(arguments)...);
  } catch (...) {
    chares.sections().forget_replies(replies);
    throw;
  }
  if constexpr (EntryMethod<T, Method>::kHasPayload) delay_until_sent(*result.state(), sending);
  return result;
}

template <class T>
template <class Value>
void Chare<T>::contribute(const Value& value, runtime::Reducer reducer, TargetFor<Value> target,
                          const CombinedSection<T>& section) {
  chares().sections().contribute(*this, section.members(), reducer, runtime::value_combiner<Value>(reducer),
                                 runtime::pack_contribution(value, reducer, runtime()),
                                 target.target(reducer));
}

template <class T>
template <auto Merge, class Value>
void Chare<T>::contribute(const Value& value, TargetFor<Value> target, const CombinedSection<T>& section) {
  chares().sections().contribute(
      *this, section.members(), runtime::Reducer::kCustom, runtime::custom_combiner<Value, Merge>(),
      base::pack_small(value, &runtime()), target.target(runtime::Reducer::kCustom));
}

template <class T>
void Chare<T>::contribute(runtime::TargetFor<void> target, const CombinedSection<T>& section) {
  chares().sections().contribute(*this, section.members(), runtime::Reducer::kCustom,
                                 runtime::nothing_combiner(), {}, target.target());
}

}  // namespace weft::chare
