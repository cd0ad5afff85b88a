// Not part of the tests' programs: each REFUSED is compiled alone, and the compiler must refuse it with a sentence
// that says what to do. 0 is accepted, and shows that it is not something else that the compiler refuses.
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.h"

namespace {

struct Plain {
  int number;
  double values[3];
};
struct WithPointer {
  int number;
  const char* text;
};
class WithHiddenPointer {
 public:
  constexpr explicit WithHiddenPointer(int* number = nullptr) : number_(number) {}

 private:
  int* number_;
};

struct Target : weft::Chare<Target> {
  void plain(Plain, const std::vector<Plain>&, std::vector<std::optional<Plain>>, std::string_view,
             std::span<const int>) {}
  void pointer(int*) {}
  void struct_with_pointer(WithPointer) {}
  void hidden_pointer(const WithHiddenPointer&) {}
  void views_inside(std::vector<std::string_view>) {}
  void view_in_map(std::map<int, std::string_view>) {}
  void writable_span(std::span<int>) {}
  void span_of_pointers(std::span<const WithPointer>) {}
  void span_of_bool(std::span<const bool>) {}
  void span(std::span<const int>) {}
  void reference_wrapper(std::reference_wrapper<int>) {}
  void mutable_reference(int&) {}
  int& returned_reference() { return number; }
  std::string_view returned_view() { return "text"; }
  int number = 0;
};

struct Conditional : weft::Chare<Conditional> {
  void fitting(int, std::vector<int>, std::span<const int>) {}
  void unfit(int) {}
  void changed(int) {}
  void posted(weft::Payload<int>) {}
  void post_posted(weft::ReceiveBuffer<int>&) {}
  void asked_twice(int) {}
  bool is_fit(int, const std::vector<int>&, std::span<const int>) const { return true; }
  bool takes_text(std::string_view) const { return true; }
  bool changes(int) { return true; }
  bool holds() const { return true; }
  using PostEntryMethods =
      weft::PostEntryMethods<weft::Post<&Conditional::posted, &Conditional::post_posted>>;
  using WhenConditions = weft::WhenConditions<weft::When<&Conditional::fitting, &Conditional::is_fit>,
                                              weft::When<&Conditional::unfit, &Conditional::takes_text>,
                                              weft::When<&Conditional::changed, &Conditional::changes>,
                                              weft::When<&Conditional::posted, &Conditional::holds>,
                                              weft::When<&Conditional::asked_twice, &Conditional::holds>,
                                              weft::When<&Conditional::asked_twice, &Conditional::holds>>;
};

struct BalancedTwice : weft::Chare<BalancedTwice> {
  static constexpr bool kBalancePeriodically = true;
  void resume_from_sync() override {}
  void pup(weft::Pup&) {}
  void method() {}
};
struct BalancedAndFixed : weft::Chare<BalancedAndFixed> {
  static constexpr bool kBalancePeriodically = true;
  void method() {}
};

struct CreatedInVain : weft::Chare<CreatedInVain> {
  void method() {}

 private:
  weft::Task<> created() { co_return; }
};

struct ComparesMembers : weft::Chare<ComparesMembers> {
  void fitting(int) {}
  void unfit(long) {}
  int step = 0;
  using WhenConditions = weft::WhenConditions<weft::When<&ComparesMembers::fitting, &ComparesMembers::step>,
                                              weft::When<&ComparesMembers::unfit, &ComparesMembers::step>>;
};

// The targets of contributions take other types than the contributions have.
struct Contributor : weft::Chare<Contributor> {
  using Reducer = weft::Reducer;
  void number(int) {}
  void numbers(std::span<const int>) {}
  void text(const std::string&) {}
  void nothing() {}
  void two(int, int) {}
  static int larger(int a, int b) { return a > b ? a : b; }
  void give(weft::Future<int> one, weft::Future<> none, weft::Future<std::vector<int>> list) {
#if REFUSED == 0
    contribute(1, Reducer::kSum, weft::target_of(one));
    contribute(1, Reducer::kGather, weft::target_of(list));
    contribute(std::vector<int>(), Reducer::kConcat, weft::target_of(list));
    contribute(std::vector<int>(), Reducer::kSum, proxy()[0].target<&Contributor::numbers>());
    contribute<&Contributor::larger>(1, proxy().target<&Contributor::two>(7));
    contribute(weft::target_of(none));
    contribute(proxy().target<&Contributor::number>(7));
    weft::quiescence(runtime(), proxy().target<&Contributor::nothing>());
    const weft::Target any = weft::target_of(none);
    contribute(1.5, Reducer::kSum, any);
#elif REFUSED == 21 || REFUSED == 22
    contribute(1.5, Reducer::kSum, weft::target_of(one));
#elif REFUSED == 23
    contribute(weft::target_of(one));
#elif REFUSED == 24
    contribute(1, Reducer::kSum, weft::target_of(none));
#elif REFUSED == 25
    contribute<&Contributor::larger>(1, proxy().target<&Contributor::text>());
#elif REFUSED == 26
    contribute(index(), Reducer::kGather, weft::target_of(list));
#elif REFUSED == 27
    weft::quiescence(runtime(), proxy()[0].target<&Contributor::text>());
#elif REFUSED == 28
    contribute(1, Reducer::kSum, proxy().target<&Contributor::two>());
#elif REFUSED == 29
    contribute(1, Reducer::kSum, weft::target_of(list), proxy().section({0}));
#endif
    static_cast<void>(one);
    static_cast<void>(none);
    static_cast<void>(list);
  }
};

// No method of that name, but a variable.
struct NamedCreated : weft::Chare<NamedCreated> {
  void method() {}
  bool created = false;
};

}  // namespace

void send(const weft::ElementProxy<Target>& target, int& number) {
  [[maybe_unused]] const weft::ElementProxy<Conditional> conditional;
#if REFUSED == 0
  target.send<&Target::plain>(Plain(), std::vector<Plain>(), std::vector<std::optional<Plain>>(), "text",
                              std::vector<int>());
  const int array[3] = {};
  target.send<&Target::span>(array);
  target.send<&Target::span>(std::array<int, 3>());
  target.send<&Target::span>(std::span<int>());
  conditional.send<&Conditional::fitting>(1, std::vector<int>(), array);
  weft::ElementProxy<NamedCreated>().send<&NamedCreated::method>();
  weft::ElementProxy<ComparesMembers>().send<&ComparesMembers::fitting>(1);
#elif REFUSED == 1
  target.send<&Target::pointer>(&number);
#elif REFUSED == 2
  target.send<&Target::struct_with_pointer>(WithPointer());
#elif REFUSED == 3
  target.send<&Target::hidden_pointer>(WithHiddenPointer(&number));
#elif REFUSED == 4
  target.send<&Target::views_inside>(std::vector<std::string_view>());
#elif REFUSED == 5
  target.send<&Target::view_in_map>(std::map<int, std::string_view>());
#elif REFUSED == 6
  target.send<&Target::writable_span>(std::span<int>());
#elif REFUSED == 7
  target.send<&Target::reference_wrapper>(std::ref(number));
#elif REFUSED == 8
  target.send<&Target::mutable_reference>(number);
#elif REFUSED == 9
  static_cast<void>(target.call<&Target::returned_reference>());
#elif REFUSED == 10
  static_cast<void>(target.call<&Target::returned_view>());
#elif REFUSED == 11
  target.send<&Target::span_of_pointers>(std::vector<WithPointer>());
#elif REFUSED == 12
  target.send<&Target::span_of_bool>(std::array<bool, 2>());
#elif REFUSED == 13
  target.send<&Target::span>(std::vector<long>());
#elif REFUSED == 14
  conditional.send<&Conditional::unfit>(1);
#elif REFUSED == 15
  conditional.send<&Conditional::changed>(1);
#elif REFUSED == 16
  static_cast<void>(conditional.send<&Conditional::posted>(weft::nocopy(std::span<const int>())));
#elif REFUSED == 17
  conditional.send<&Conditional::asked_twice>(1);
#elif REFUSED == 18
  weft::ElementProxy<BalancedTwice>().send<&BalancedTwice::method>();
#elif REFUSED == 19
  weft::ElementProxy<BalancedAndFixed>().send<&BalancedAndFixed::method>();
#elif REFUSED == 20
  weft::ElementProxy<CreatedInVain>().send<&CreatedInVain::method>();
#elif REFUSED == 30
  weft::ElementProxy<ComparesMembers>().send<&ComparesMembers::unfit>(1);
#endif
  static_cast<void>(number);
}
