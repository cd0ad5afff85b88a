#include "collective/inbox.h"

#include <gtest/gtest.h>

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
