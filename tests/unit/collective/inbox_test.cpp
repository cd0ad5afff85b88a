#include "collective/inbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

namespace weft::collective {
namespace {

// Takes the messages of the rounds 0, 1, ... in turn, and is over after the last one.
class CountingCall final : public Awaiting {
 public:
  CountingCall(std::uint64_t number, int num_rounds) : Awaiting(number), num_rounds_(num_rounds) {}
  Taken take(const StepHeader& header, std::span<const std::byte> /*blocks*/) override {
    if (header.round != static_cast<std::uint32_t>(next_)) return Taken::kNot;
    return ++next_ == num_rounds_ ? Taken::kAndOver : Taken::kYes;
  }
  void note_kept(const StepHeader& header) override { noted.push_back(static_cast<int>(header.round)); }

  std::vector<int> noted;

 private:
  int num_rounds_;
  int next_ = 0;
};

StepHeader header_of(std::uint64_t number, int from, std::uint32_t round) {
  return {.group = 1, .number = number, .from = from, .round = round};
}

TEST(Inbox, AMessageWithoutACallIsKept) {
  Inbox inbox;
  EXPECT_FALSE(inbox.arrive(0, header_of(4, 2, 0), {}));
  EXPECT_EQ(inbox.num_kept(), 1U);
  EXPECT_FALSE(inbox.take_kept(5, 2, 0));  // of another call
  EXPECT_FALSE(inbox.take_kept(4, 1, 0));  // sender
  EXPECT_FALSE(inbox.take_kept(4, 2, 1));  // round
  EXPECT_TRUE(inbox.take_kept(4, 2, 0));
  EXPECT_EQ(inbox.num_kept(), 0U);
}

TEST(Inbox, ACallTakesItsMessagesAndKeepsThoseThatAreEarly) {
  Inbox inbox;
  CountingCall first(1, 2);
  CountingCall second(2, 1);
  inbox.begin(first);
  inbox.begin(second);
  EXPECT_TRUE(inbox.arrive(0, header_of(2, 0, 0), {}));
  EXPECT_FALSE(inbox.arrive(0, header_of(1, 0, 1), {}));
  EXPECT_EQ(first.noted, std::vector<int>{1});
  EXPECT_FALSE(inbox.arrive(0, header_of(1, 0, 0), {}));
  EXPECT_EQ(inbox.num_kept(), 1U);
  inbox.end(first);
  EXPECT_FALSE(inbox.arrive(0, header_of(1, 0, 0), {}));
  EXPECT_EQ(inbox.num_kept(), 2U);
}

class Numbers final : public NumberCheck {
 public:
  void check(int /*from*/, std::uint64_t number) override { checked.push_back(number); }
  std::vector<std::uint64_t> checked;
};

// The lower half of a number is a counter, the upper one is what members must agree on.
TEST(Inbox, NumbersOfNoCallAreChecked) {
  constexpr std::uint64_t kOther = std::uint64_t{1} << 32;
  Inbox inbox;
  Numbers numbers;
  inbox.number_check = &numbers;
  inbox.arrive(0, header_of(1, 0, 0), {});
  inbox.arrive(0, header_of(2 + kOther, 0, 0), {});
  EXPECT_EQ(numbers.checked, (std::vector<std::uint64_t>{1, 2 + kOther}));
  numbers.checked.clear();
  CountingCall first(1, 9);
  CountingCall second(2, 9);
  inbox.begin(first);
  EXPECT_TRUE(numbers.checked.empty());
  inbox.begin(second);
  EXPECT_EQ(numbers.checked, std::vector<std::uint64_t>{2 + kOther});
  inbox.arrive(0, header_of(1, 0, 1), {});  // of a call under way
  EXPECT_EQ(numbers.checked.size(), 1U);
  inbox.arrive(0, header_of(1 + kOther, 0, 1), {});
  EXPECT_EQ(numbers.checked.back(), 1 + kOther);
  EXPECT_EQ(inbox.call_with(2), &second);
  EXPECT_EQ(inbox.call_with(3), nullptr);
  EXPECT_EQ(inbox.oldest(), &first);
}

// Messages of many calls, taken in another order, in rounds: what was taken makes room.
TEST(KeptMessages, EachIsTakenOnce) {
  KeptMessages kept;
  std::mt19937 random(5);
  for (int round = 0; round < 4; ++round) {
    std::vector<StepHeader> headers;
    for (std::uint64_t number = 0; number < 100; ++number)
      for (int from = 0; from < 3; ++from)
        headers.push_back(
            header_of(number * 7 + (number % 2 << 32), from, static_cast<std::uint32_t>(round)));
    std::shuffle(headers.begin(), headers.end(), random);
    for (const StepHeader& header : headers) {
      const std::vector<std::byte> blocks(header.number % 90, static_cast<std::byte>(header.number));
      kept.add(header.from, header, blocks);
    }
    EXPECT_EQ(kept.size(), headers.size());
    int num_of_counter = 0;
    kept.for_counter(21, [&](const KeptMessage&) { ++num_of_counter; });
    EXPECT_EQ(num_of_counter, 3);
    std::shuffle(headers.begin(), headers.end(), random);
    for (const StepHeader& header : headers) {
      EXPECT_FALSE(kept.take(header.number, header.from, 99));
      const std::optional<KeptMessage> taken = kept.take(header.number, header.from, header.round);
      ASSERT_TRUE(taken);
      EXPECT_EQ(taken->source_pe, header.from);
      EXPECT_EQ(taken->blocks.size(), header.number % 90);
      if (!taken->blocks.empty()) {
        EXPECT_EQ(*(taken->blocks.end() - 1), static_cast<std::byte>(header.number));
      }
      EXPECT_FALSE(kept.take(header.number, header.from, header.round));
    }
    EXPECT_EQ(kept.size(), 0U);
  }
}

TEST(InboxTable, AnInboxThatDropsAllStays) {
  InboxTable table;
  Inbox& one = table.inbox(7, 0);
  one.keep(0, header_of(3, 1, 0), {});
  EXPECT_EQ(one.drop_all().size(), 1U);
  EXPECT_EQ(one.num_kept(), 0U);
  table.forget(7, 0);
  EXPECT_TRUE(table.inbox(7, 0).drops_all());
}

TEST(InboxTable, AnInboxStaysWhileMessagesAreKept) {
  InboxTable table;
  Inbox& one = table.inbox(7, 0);
  table.inbox(7, 1);
  one.keep(0, header_of(3, 1, 0), {});
  table.forget(7, 0);
  table.forget(7, 1);
  EXPECT_EQ(table.size(), 1U);
  EXPECT_TRUE(table.inbox(7, 0).take_kept(3, 1, 0));
  table.forget(7, 0);
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.inbox(7, 0).num_kept(), 0U);  // the last one looked for is not remembered
}

}  // namespace
}  // namespace weft::collective
