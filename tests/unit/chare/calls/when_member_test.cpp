// Conditions that are data members, and how they get on with those that are methods.
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

constexpr std::size_t kOutOfBandElements = 10'000;  // doubles: they travel out of band

struct Keyed : Chare<Keyed> {
  Keyed() = default;
  explicit Keyed(Moved) {}
  void pup(Pup& p) { p | number | name | is_open | ran; }

  int step(int) { return log_and_go_on(); }
  void view(int, std::span<const double> values) {
    if (values.size() == kOutOfBandElements) log_and_go_on();
  }
  Task<int> wait(int) {
    co_await runtime::yield_now(runtime());
    co_return log_and_go_on();
  }
  std::string call_name(const std::string& called) {
    name += "+";
    return called;
  }
  int count_asked(int value) {
    ran.push_back(value);
    return num_asked;
  }
  bool is_asked(int) const {
    ++num_asked;
    return is_open;
  }
  int log_and_go_on() {
    ran.push_back(number);
    return number++;
  }
  void open() { is_open = true; }
  void set(int value) { number = value; }
  void plain() {}
  std::vector<int> log() { return ran; }
  int asked() { return num_asked; }
  int waiting() { return static_cast<int>(num_waiting_calls()); }
  void go(int to_pe) { migrate(to_pe); }

  int number = 0;
  std::string name = "a";
  bool is_open = false;
  mutable int num_asked = 0;
  std::vector<int> ran;

  using WhenConditions =
      weft::WhenConditions<When<&Keyed::step, &Keyed::number>, When<&Keyed::view, &Keyed::number>,
                           When<&Keyed::wait, &Keyed::number>, When<&Keyed::call_name, &Keyed::name>,
                           When<&Keyed::count_asked, &Keyed::is_asked>>;
};

TEST(WhenMember, CallsAreFoundByTheMemberThatTheyEqual) {
  for (const int num_pes : {1, 3}) {
    testing::InProcessJob job(num_pes);
    EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
      constexpr int kCount = 150;
      auto cells = Array<Keyed>::create(runtime, {num_pes});
      co_await cells.created();
      for (int cell = 0; cell < num_pes; ++cell) {
        auto proxy = cells[cell];
        std::vector<Future<int>> results;
        for (int number = kCount - 1; number >= 0; --number) {
          if (number % 3 == 0) results.push_back(proxy.call<&Keyed::wait>(number));
          if (number % 3 == 1) results.push_back(proxy.call<&Keyed::step>(number));
        }
        auto twice =
            proxy.call<&Keyed::step>(4);  // behind the first call with 4, which makes it wait for ever
        for (int number = 2; number < kCount; number += 3)
          proxy.send<&Keyed::view>(number, std::vector<double>(kOutOfBandElements));
        for (const Future<int>& result : results) static_cast<void>(co_await result);
        co_await runtime.quiescence();
        EXPECT_FALSE(twice.state()->is_set());
        co_await proxy.call<&Keyed::go>((cell + 1) % num_pes);
        co_await runtime.quiescence();
        EXPECT_EQ(co_await proxy.call<&Keyed::waiting>(), 1);
        co_await proxy.call<&Keyed::set>(4);
        EXPECT_EQ(co_await twice, 4);
      }
    }),
              "");
  }
}

TEST(WhenMember, CallsWithOtherKeysAreNotAsked) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Keyed>::create(runtime, {2});
    co_await cells.created();
    for (int cell = 0; cell < 2; ++cell) {
      auto proxy = cells[cell];
      auto asked = proxy.call<&Keyed::count_asked>(7);
      auto named = proxy.call<&Keyed::call_name>("a++");
      for (int number = 100; number > 0; --number) proxy.send<&Keyed::step>(number);
      co_await runtime.quiescence();
      EXPECT_EQ(co_await proxy.call<&Keyed::waiting>(), 102);
      // The call with a method as its condition is asked after each other call, and the others are not.
      const int before = co_await proxy.call<&Keyed::asked>();
      for (int i = 0; i < 10; ++i) co_await proxy.call<&Keyed::plain>();
      EXPECT_EQ(co_await proxy.call<&Keyed::asked>(), before + 11);
      EXPECT_EQ(co_await proxy.call<&Keyed::call_name>("a"), "a");
      EXPECT_EQ(co_await proxy.call<&Keyed::call_name>("a+"), "a+");
      EXPECT_EQ(co_await named, "a++");
      co_await proxy.call<&Keyed::open>();
      static_cast<void>(co_await asked);
      EXPECT_EQ(co_await proxy.call<&Keyed::step>(0), 0);
      co_await runtime.quiescence();
      const std::vector<int> ran = co_await proxy.call<&Keyed::log>();
      EXPECT_EQ(ran.size(), 102U);
      EXPECT_EQ(ran.at(0), 7);
      EXPECT_EQ(ran.back(), 100);
    }
  }),
            "");
}

// Which of two calls runs is the order of their arrival, also if only one has a key.
TEST(WhenMember, CallsWithAndWithoutKeysRunInOrderOfArrival) {
  testing::InProcessJob job(1);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Keyed>::create(runtime, {1});
    co_await cells.created();
    auto proxy = cells[0];
    for (int number = 1; number <= 3; ++number) {
      proxy.send<&Keyed::count_asked>(-number);
      proxy.send<&Keyed::step>(number);
    }
    co_await proxy.call<&Keyed::open>();
    const std::vector<int> first = co_await proxy.call<&Keyed::log>();
    EXPECT_EQ(first, (std::vector<int>{-1, -2, -3}));
    EXPECT_EQ(co_await proxy.call<&Keyed::step>(0), 0);
    const std::vector<int> all = co_await proxy.call<&Keyed::log>();
    EXPECT_EQ(all, (std::vector<int>{-1, -2, -3, 0, 1, 2, 3}));
  }),
            "");
}

}  // namespace
}  // namespace weft::chare
