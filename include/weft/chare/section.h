// Sections: some elements of a collection, with calls and reductions of their own.
//
//   weft::Section<Cell> row = grid.slice({weft::Range::one(0), weft::Range::all()});
//   weft::Section<Cell> corners = grid.section({{0, 0}, {0, 9}, {9, 0}, {9, 9}});
//   row.send<&Cell::update>(x);                                    // every member
//   std::vector<double> all = co_await row.call<&Cell::get>();     // in the order of the section
//   contribute(value, Reducer::kSum, target, row);                 // in a member: a reduction over the section
//
// A section is a small value that travels in messages; it names its members by their indices, so it stays valid when they move.
// Sections with the same members in the same order are the same section, wherever they were made. No call here blocks.
//
// GCC 12 does not compile a list of indices in an expression with co_await ("array used as initializer"): give the section a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weft/chare/proxy.h"
#include "weft/chare/section_members.h"
#include "weft/chare/sections.h"

namespace weft::chare {

template <class T>
class Section {
 public:
  // A section of no collection; it has no members, and nothing can be called on it.
  Section() = default;
  Section(Collection& collection, SectionMembers::Pointer members)
      : collection_(&collection), members_(std::move(members)) {}
  // Not trivially copyable, as a proxy.
  Section(const Section& other) = default;
  Section& operator=(const Section& other) = default;

  // Both throw Error(kInvalidArgument) if it is of no collection.
  Collection& collection() const {
    section_detail::expect_collection(collection_);
    return *collection_;
  }
  const SectionMembers& members() const {
    section_detail::expect_collection(collection_);
    return *members_;
  }
  const SectionMembers::Pointer& shared_members() const { return members_; }
  std::uint64_t size() const { return members_ == nullptr ? 0 : members_->size(); }
  // The i-th member. Throws Error(kOutOfRange).
  ElementProxy<T> operator[](std::uint64_t i) const {
    if (i >= size()) section_detail::throw_no_member(i, size());
    return ElementProxy<T>(*collection_, members_->at(i));
  }
  // Whether that element is a member. Throws Error(kOutOfRange) for an index outside of the collection.
  bool contains(const Index& index) const {
    return members().position(collection().shape().linear(index)).has_value();
  }

  // Runs the method on every member. For a method with payloads it returns an Operation that completes when their memory may
  // change again, else nothing.
  template <auto Method, class... Args>
  auto send(Args&&... arguments) const {
    runtime::OperationState* sending = send_call<Method>(ReplyTo{}, std::forward<Args>(arguments)...);
    if constexpr (EntryMethod<T, Method>::kHasPayload) return runtime::Operation(sending);
  }

  // Runs the method on every member. Returns a future of their results in the order of the section; or of the first exception
  // that arrives, at once, while other members may run; or of the failure if payloads could not be sent to all.
  template <auto Method, class... Args>
  auto call(Args&&... arguments) const;

  // The method of every member as the target of a reduction, see ElementProxy::target. The members travel with each
  // contribution.
  template <auto Method, class... Bound>
  proxy_detail::TargetOfMethod<T, Method, sizeof...(Bound)> target(const Bound&... bound) const {
    const EntryHeader header{collection().id(), 0, EntryMethod<T, Method>::info().id, 0, {}};
    const base::SmallBytes call =
        proxy_detail::pack_target<EntryMethod<T, Method>>(collection_->chares().runtime(), header, bound...);
    return proxy_detail::TargetOfMethod<T, Method, sizeof...(Bound)>(
        sections().target(*collection_, *members_, std::span(call.data(), call.size())));
  }

  // --- Sections of this section

  // The members that the function accepts, in the order of this section.
  template <class Accepts>
  Section section_if(Accepts accepts) const {
    std::vector<std::uint64_t> chosen;
    for (std::uint64_t i = 0; i < size(); ++i) {
      if (accepts(collection_->shape().index(members_->at(i)))) chosen.push_back(members_->at(i));
    }
    return Section(collection(), SectionMembers::of_list(collection(), std::move(chosen)));
  }
  // The members from place `first` up to, and without, place `end`, each `step`-th. Throws Error(kOutOfRange) unless
  // first <= end <= size() and step > 0.
  Section slice(std::uint64_t first, std::uint64_t end, std::uint64_t step = 1) const {
    section_detail::expect_collection(collection_);
    section_detail::expect_slice(first, end, step, size());
    if (first == end) return Section(*collection_, members_->select(*collection_, first, 0));
    const std::uint64_t count = (end - first - 1) / step + 1;
    // From two members on the step is less than the size.
    return Section(*collection_, members_->select(*collection_, first, count,
                                                  count == 1 ? 1 : static_cast<std::int64_t>(step)));
  }
  // Sections of successive members, whose sizes differ by one at most.
  std::vector<Section> split(int parts) const {
    std::vector<Section> sections;
    for (SectionMembers::Pointer& one : members().split(collection(), parts))
      sections.emplace_back(*collection_, std::move(one));
    return sections;
  }

  void pup(Pup& p) { pup_section(p, collection_, members_); }

 private:
  Sections& sections() const { return collection_->chares().sections(); }
  template <auto Method, class... Args>
  runtime::OperationState* send_call(const ReplyTo& reply, Args&&... arguments) const {
    using Entry = EntryMethod<T, Method>;
    static_assert(std::tuple_size_v<typename Entry::Arguments> == sizeof...(Args),
                  "the method takes another number of arguments");
    Chares& chares = collection().chares();
    runtime::MessagePtr message = proxy_detail::pack_call<typename Entry::Packing>(
        chares, {collection_->id(), 0, Entry::info().id, 0, reply}, CallTo::kElement,
        std::forward<Args>(arguments)...);
    runtime::OperationState* sending = nullptr;
    if constexpr (Entry::kHasPayload) sending = runtime::report_sending(chares.runtime(), *message);
    return runtime::send_reported(
        sending, [&] { sections().send(*collection_, *members_, reply, std::move(message)); });
  }

  Collection* collection_ = nullptr;
  SectionMembers::Pointer members_;
};

// The members of the first, then those of the second that are not among them, and so on. REQUIRES: all of one collection; throws
// Error(kInvalidArgument) otherwise. For several collections see combined_section.h.
template <class T, class... More>
Section<T> combine(const Section<T>& first, const More&... more) {
  (section_detail::expect_same(first.collection(), more.collection()), ...);
  const SectionMembers::Pointer all[] = {first.shared_members(), more.shared_members()...};
  return Section<T>(first.collection(), SectionMembers::combined(first.collection(), all));
}

// --- Implementation

template <class T>
template <auto Method, class... Args>
auto Section<T>::call(Args&&... arguments) const {
  using Value = typename EntryMethod<T, Method>::Value;
  static_assert(!payload_detail::kIsPayload<Value>,
                "the results of a section are gathered and cannot be payloads: call each element");
  runtime::Future<GatheredValues<Value>> result(collection().chares().runtime());
  const ReplyTo reply = sections().expect_gather(gather_into<Value>(result, members_->places_by_index()));
  runtime::OperationState* sending = collection_->chares().send_expecting(
      reply, [&] { return send_call<Method>(reply, std::forward<Args>(arguments)...); });
  if constexpr (EntryMethod<T, Method>::kHasPayload) delay_until_sent(*result.state(), sending);
  return result;
}

template <class T>
Section<T> CollectionProxy<T>::section(std::initializer_list<Index> indices) const {
  return section(std::vector<Index>(indices));
}

template <class T>
Section<T> CollectionProxy<T>::section(const std::vector<Index>& indices) const {
  std::vector<std::uint64_t> members;
  members.reserve(indices.size());
  for (const Index& index : indices) members.push_back(shape().linear(index));
  return Section<T>(*collection_, SectionMembers::of_list(*collection_, std::move(members)));
}

template <class T>
template <class Accepts>
Section<T> CollectionProxy<T>::section_if(Accepts accepts) const {
  return Section<T>(*collection_, SectionMembers::of_function(*collection_, std::move(accepts)));
}

template <class T>
Section<T> CollectionProxy<T>::slice(std::initializer_list<Range> ranges) const {
  return Section<T>(*collection_, SectionMembers::of_ranges(*collection_, {ranges.begin(), ranges.size()}));
}

template <class T>
template <class Value>
void Chare<T>::contribute(const Value& value, runtime::Reducer reducer, TargetFor<Value> target,
                          const Section<T>& section) {
  chares().sections().contribute(
      *this, section.collection(), section.members(), reducer, runtime::value_combiner<Value>(reducer),
      runtime::pack_contribution(value, reducer, runtime()), target.target(reducer));
}

template <class T>
template <auto Merge, class Value>
void Chare<T>::contribute(const Value& value, TargetFor<Value> target, const Section<T>& section) {
  chares().sections().contribute(*this, section.collection(), section.members(), runtime::Reducer::kCustom,
                                 runtime::custom_combiner<Value, Merge>(),
                                 base::pack_small(value, &runtime()),
                                 target.target(runtime::Reducer::kCustom));
}

template <class T>
void Chare<T>::contribute(runtime::TargetFor<void> target, const Section<T>& section) {
  chares().sections().contribute(*this, section.collection(), section.members(), runtime::Reducer::kCustom,
                                 runtime::nothing_combiner(), {}, target.target());
}

}  // namespace weft::chare
