#include "runtime/waits/wait_report.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "weft/base/pup.h"

namespace weft::runtime {
namespace {

constexpr std::uint64_t kCells = 7;

NamedParty cell(std::uint64_t index) { return {{kCells, index}, "Cell[" + std::to_string(index) + "]"}; }

Wait wait_of(std::uint64_t index, std::vector<NamedParty> on, std::string what = "recv") {
  return {.who = cell(index), .what = std::move(what), .on = std::move(on)};
}

std::string report_of(std::vector<Wait> waits, std::vector<ContributionCount> counts = {},
                      bool hangs = true) {
  std::vector<WaitsOfPe> pes(1);
  pes[0].has_answered = true;
  for (Wait& wait : waits) pes[0].list.add(std::move(wait));
  for (ContributionCount& count : counts) pes[0].list.add(std::move(count));
  return wait_report(pes, hangs);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(WaitReport, ACycleIsTheCauseOfThoseThatWaitForIt) {
  const std::string text = report_of({wait_of(0, {cell(1)}), wait_of(1, {cell(2)}), wait_of(2, {cell(1)})});
  EXPECT_TRUE(has(text, "  cause: Cell[1] waits for Cell[2], and Cell[2] for Cell[1]\n")) << text;
  EXPECT_FALSE(has(text, "cause: Cell[0]")) << text;
}

TEST(WaitReport, EachCycleIsNamedOnce) {
  const std::string text =
      report_of({wait_of(0, {cell(1), cell(1)}), wait_of(1, {cell(0)}), wait_of(2, {cell(2)})});
  EXPECT_TRUE(has(
      text, "cause: Cell[0] waits for Cell[1], and Cell[1] for Cell[0]\n  cause: Cell[2] waits for itself\n"))
      << text;
}

TEST(WaitReport, APartyThatWaitsForNothingIsTheCause) {
  const std::string text = report_of({wait_of(0, {cell(2)}), wait_of(1, {cell(2)})});
  EXPECT_TRUE(has(text, "cause: Cell[2] waits for nothing, and Cell[0] and Cell[1] wait for it\n")) << text;
}

TEST(WaitReport, AWaitWithoutAPartyIsTheCause) {
  const std::string text = report_of({wait_of(0, {cell(1)}), wait_of(1, {}, "a future")});
  EXPECT_TRUE(has(text, "cause: Cell[1]: a future\n")) << text;
  EXPECT_FALSE(has(text, "waits for nothing")) << text;
}

TEST(WaitReport, ElementsThatAReductionLacksAreTheCause) {
  const NamedParty all{{kCells, Party::kAll}, "Cell"};
  const ContributionCount with{.collection = all, .reductions = 6, .num_elements = 7, .elements = {cell(0)}};
  const ContributionCount without{
      .collection = all, .reductions = 5, .num_elements = 1, .elements = {cell(7)}};
  const std::string text =
      report_of({wait_of(0, {all}, "reduction 5"), wait_of(7, {cell(0)})}, {with, without});
  EXPECT_TRUE(has(text, "cause: reduction 5 of Cell lacks Cell[7]\n")) << text;
  // Through the reduction, the two wait for one another.
  EXPECT_TRUE(has(text, "cause: Cell[0] waits for Cell[7], and Cell[7] for Cell[0]\n")) << text;
}

TEST(WaitReport, AMissingCallIsCountedApartFromReductions) {
  const NamedParty all{{kCells, Party::kAll}, "Cell"};
  const std::string text = report_of(
      {}, {{.collection = all, .reductions = 6, .num_elements = 1, .elements = {cell(0)}},
           {.collection = all,
            .what = "at_sync()",
            .scope = 1,
            .reductions = 1,
            .num_elements = 1,
            .elements = {cell(0)}},
           {.collection = all, .what = "at_sync()", .scope = 1, .num_elements = 1, .elements = {cell(1)}}});
  EXPECT_TRUE(has(text, "cause: at_sync() 0 of Cell lacks Cell[1]\n")) << text;
  EXPECT_FALSE(has(text, "cause: reduction")) << text;
}

TEST(WaitReport, AWaitIsAsOldAsTheIdlenessOfItsPe) {
  std::vector<WaitsOfPe> pes(2);
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    pes[pe].pe = static_cast<int>(pe);
    pes[pe].has_answered = true;
    pes[pe].list.add(wait_of(pe, {cell(9)}, "recv"));
    pes[pe].list.set_idle_s(pe == 0 ? 0 : 12.25);
  }
  const std::string text = wait_report(pes, true);
  EXPECT_TRUE(has(text, "    PE 0, 1: Cell[0]: recv, and 1 like it\n")) << text;
  pes[0].list.set_idle_s(11.5);
  EXPECT_TRUE(has(wait_report(pes, true), "recv, and 1 like it, for 11.5 s or longer\n"))
      << wait_report(pes, true);
}

TEST(WaitReport, MessagesThatNoReceiveTakesAreNamed) {
  std::vector<WaitsOfPe> pes(2);
  for (WaitsOfPe& one : pes) one.has_answered = true;
  pes[0].list.add(StreamCount{.from = cell(0), .to = cell(1), .id = 3, .sent = 5});
  pes[0].list.add(StreamCount{.from = cell(1), .to = cell(0), .id = 3, .received = 2});
  pes[1].list.add(StreamCount{.from = cell(0), .to = cell(1), .id = 3, .received = 4});
  pes[1].list.add_remark("a remark");
  const std::string text = wait_report(pes, true);
  EXPECT_TRUE(
      has(text, "  messages that no recv has taken:\n    1 message from Cell[0] to Cell[1], channel id 3\n"))
      << text;
  EXPECT_FALSE(has(text, "from Cell[1]")) << text;
  EXPECT_TRUE(has(text, ": a remark\n")) << text;
}

TEST(WaitReport, MessagesToAPeThatDoesNotAnswerMayBeTaken) {
  std::vector<WaitsOfPe> pes(2);
  pes[1].pe = 1;
  pes[0].has_answered = true;
  pes[0].list.add(StreamCount{.from = cell(0), .to = cell(1), .id = 3, .sent = 5});
  const std::string text = wait_report(pes, false);
  EXPECT_FALSE(has(text, "no recv has taken")) << text;
  EXPECT_TRUE(has(text, "no answer from PE 1")) << text;
}

TEST(WaitReport, WaitsThatDifferInNumbersAreOneLine) {
  const std::string text =
      report_of({wait_of(0, {cell(9)}, "recv of 8 bytes"), wait_of(11, {cell(9)}, "recv of 16 bytes")});
  EXPECT_TRUE(has(text, "    PE 0: Cell[0]: recv of 8 bytes, and 1 like it\n")) << text;
}

TEST(WaitReport, ACoroutineThatKnowsNothingNamesWhatItsPartyWaitsFor) {
  const Wait coroutine{.who = cell(0), .where = "Cell[0].work"};
  const std::string text = report_of({coroutine, wait_of(0, {cell(1)})});
  EXPECT_TRUE(has(text, "    PE 0: Cell[0].work: recv\n")) << text;
  EXPECT_FALSE(has(text, "suspended")) << text;
  EXPECT_TRUE(has(report_of({coroutine}), "    PE 0: Cell[0].work: suspended\n"));
}

TEST(WaitReport, MoreCoroutinesThanWaitsOfTheirPartyStay) {
  const Wait first{.who = cell(0), .where = "Cell[0].first", .guess = "a future"};
  const Wait second{.who = cell(0), .where = "Cell[0].second", .guess = "a future"};
  const std::string text = report_of({first, second, wait_of(0, {cell(1)})});
  EXPECT_TRUE(has(text, "cause: Cell[0].second: a future\n")) << text;
  EXPECT_TRUE(has(text, "Cell[0]: recv\n")) << text;
}

TEST(WaitReport, ACoroutineThatMayWaitForAnotherOneOfItsPartyIsNoCause) {
  const Wait outer{.who = cell(0), .where = "Cell[0].outer", .guess = "a future"};
  const Wait inner{.who = cell(0), .where = "Cell[0].inner", .what = "recv", .on = {cell(1)}};
  EXPECT_FALSE(has(report_of({outer, inner}), "cause: Cell[0].outer"));
}

TEST(WaitReport, OnlyCyclesAreCausesOfAJobThatGoesOn) {
  const std::string text = report_of({wait_of(0, {cell(1)}), wait_of(2, {}, "weft.sleep")}, {}, false);
  EXPECT_FALSE(has(text, "cause")) << text;
}

TEST(WaitReport, PesThatDoNotAnswerAreNamed) {
  std::vector<WaitsOfPe> pes(2);
  pes[0].has_answered = true;
  pes[1].pe = 1;
  EXPECT_EQ(wait_report(pes, false),
            "  nothing is known to wait\n  no answer from PE 1: the program computes there, or is in a call "
            "of C\n");
}

TEST(WaitList, KeepsABoundedNumberAndTravels) {
  WaitList list;
  for (std::size_t i = 0; i < WaitList::kMost + 5; ++i) list.add(wait_of(i, {cell(i + 1)}));
  const auto copy = base::unpack<WaitList>(base::pack(list));
  EXPECT_EQ(copy.waits().size(), WaitList::kMost);
  EXPECT_EQ(copy.num_left_out(), 5);
  EXPECT_EQ(copy.waits().back().on.at(0).name, "Cell[1000]");
}

}  // namespace
}  // namespace weft::runtime
