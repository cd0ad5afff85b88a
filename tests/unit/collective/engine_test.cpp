#include "collective/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/unit/collective/collective_job.h"

namespace weft::collective {
namespace {

TEST(Engine, AGroupIsOneObjectWhileItLives) {
  testing::CollectiveJob job(2, {0, 1});
  auto one = job.group(0);
  EXPECT_EQ(one, job.group(0));
  EXPECT_EQ(job.engine(0).num_inboxes(), 1U);
  one = nullptr;
  EXPECT_EQ(job.engine(0).num_inboxes(), 0U);
}

// 10,000 groups, made and freed, leave nothing.
TEST(Engine, GroupsThatAreFreedLeaveNothing) {
  testing::CollectiveJob job(2, {0, 1});
  for (std::uint64_t number = 0; number < 10'000; ++number) {
    const std::vector<int> pes{0, 1};
    const auto one = job.engine(0).group(number, pes, 0);
    const auto other = job.engine(1).group(number, pes, 1);
    collective::Run first(*one, {.kind = Kind::kBarrier});
    collective::Run second(*other, {.kind = Kind::kBarrier});
    first.start();
    second.start();
    ASSERT_EQ(job.run_until([&] { return first.is_over() && second.is_over(); }), "");
  }
  EXPECT_EQ(job.engine(0).num_inboxes(), 0U);
  EXPECT_EQ(job.engine(1).num_inboxes(), 0U);
}

// In a job of several hosts, too, members of one host work as in a job of that host.
TEST(Engine, TheFormDependsOnTheHostsOfTheMembers) {
  runtime::RuntimeOptions options;
  options.host_of_pe = {0, 0, 1, 2};
  testing::CollectiveJob job(4, {0}, "loopback", options);
  std::uint64_t number = 0;
  const auto form_on = [&](const std::vector<int>& pes) {
    return job.engine(pes[0]).group(++number, pes, 0)->form(Kind::kAllreduce, 32768);
  };
  EXPECT_EQ(form_on({0, 1}), Form::kDirect);
  EXPECT_EQ(form_on({2, 2}), Form::kDirect);
  EXPECT_EQ(form_on({0, 1, 3}), Form::kLeaders);
  EXPECT_EQ(form_on({2, 0, 2}), Form::kLeaders);
  EXPECT_EQ(form_on({0, 2, 3}), Form::kFewMessages);
  for (const std::vector<int>& pes : {std::vector{0, 1}, std::vector{0, 1, 3}, std::vector{0, 2, 3}}) {
    const auto group = job.engine(pes[0]).group(++number, pes, 0);
    EXPECT_EQ(group->barrier_form(), group->form(Kind::kBarrier, 0));
  }
  EXPECT_TRUE(job.engine(0).boards().posts_for(1));
  EXPECT_FALSE(job.engine(0).boards().posts_for(2));
}

TEST(Engine, AMessageBeforeTheGroupIsKeptForIt) {
  testing::CollectiveJob job(2, {0, 1});
  const auto one = job.group(0);
  collective::Run first(*one, {.kind = Kind::kBarrier});
  first.start();
  ASSERT_EQ(job.run_until([&] { return job.engine(1).num_inboxes() == 1; }), "");
  const auto other = job.group(1);
  collective::Run second(*other, {.kind = Kind::kBarrier});
  second.start();
  EXPECT_TRUE(second.is_over());
  EXPECT_EQ(job.run_until([&] { return first.is_over(); }), "");
}

// What a member that makes no more calls has got, and what it gets, leaves its sender's board.
TEST(Group, AMemberDropsAllOnceItMakesNoMoreCalls) {
  for (const bool can_open : {true, false}) {
    testing::CollectiveJob job(2, {0, 1});
    if (!can_open) job.engine(1).boards().open_none();
    const auto one = job.group(0);
    auto other = job.group(1);
    std::vector<double> values(10'000, 1.0);
    const auto begin = [&](std::uint64_t number) {
      auto run =
          std::make_unique<collective::Run>(*one, Call{.kind = Kind::kBroadcast,
                                                       .number = number,
                                                       .form = Form::kDirect,
                                                       .data = reinterpret_cast<std::byte*>(values.data()),
                                                       .block_bytes = values.size() * sizeof(double)});
      run->start();
      return run;
    };
    const auto first = begin(1);
    ASSERT_EQ(job.run_until([&] { return other->inbox().num_kept() == 1; }), "");
    EXPECT_EQ(job.engine(0).boards().num_posted(), 1U);
    other->drop_all();
    ASSERT_EQ(job.run_until([&] { return job.engine(0).boards().num_posted() == 0; }), "");
    other = nullptr;
    const auto second = begin(2);
    ASSERT_EQ(job.run_until([&] { return job.engine(0).boards().num_posted() == 0; }), "");
    int turns = 0;
    ASSERT_EQ(job.run_until([&] { return ++turns > 20; }), "");
    EXPECT_EQ(job.group(1)->inbox().num_kept(), 0U);
  }
}

// A small block lies in its message, and a member that has failed sends none.
TEST(Group, AMemberDropsMessagesThatNameNoBoard) {
  for (const bool has_failed : {true, false}) {
    testing::CollectiveJob job(2, {0, 1});
    const auto one = job.group(0);
    const auto other = job.group(1);
    double value = 1;
    const auto send = [&](std::uint64_t number) {
      collective::Run run(*one, {.kind = Kind::kBroadcast,
                                 .number = number,
                                 .data = reinterpret_cast<std::byte*>(&value),
                                 .block_bytes = sizeof value});
      if (has_failed) run.fail();
      run.start();
      EXPECT_TRUE(run.is_over());
    };
    send(1);
    ASSERT_EQ(job.run_until([&] { return other->inbox().num_kept() == 1; }), "");
    other->drop_all();
    EXPECT_EQ(other->inbox().num_kept(), 0U);
    send(2);
    int turns = 0;
    ASSERT_EQ(job.run_until([&] { return ++turns > 20; }), "");
    EXPECT_EQ(other->inbox().num_kept(), 0U);
  }
}

// Calls under way, calls that have not started, and later ones. What the others send is dropped.
TEST(Group, ThatEndsFailsItsCalls) {
  testing::CollectiveJob job(2, {0, 1});
  const auto one = job.group(0);
  const auto other = job.group(1);
  const auto call = [](std::uint64_t number) { return Call{.kind = Kind::kBarrier, .number = number}; };
  collective::Run waiting(*one, call(1));
  waiting.start();
  EXPECT_FALSE(waiting.is_over());
  collective::Run unstarted(*one, call(2));
  one->end_all();
  EXPECT_TRUE(waiting.is_over() && waiting.has_failed());
  unstarted.start();
  EXPECT_TRUE(unstarted.is_over() && unstarted.has_failed());
  collective::Run later(*one, call(3));
  later.start();
  EXPECT_TRUE(later.is_over() && later.has_failed());
  collective::Run of_other(*other, call(3));
  of_other.start();
  int turns = 0;
  ASSERT_EQ(job.run_until([&] { return ++turns > 20; }), "");
  EXPECT_EQ(one->inbox().num_kept(), 0U);
  EXPECT_FALSE(of_other.is_over());
}

// A plan that is in use stays, however many others are made.
TEST(Group, PlansInUseStay) {
  testing::CollectiveJob job(1, std::vector<int>(40, 0));
  const auto group = job.group(3);
  Plan& used = group->plan({.kind = Kind::kBroadcast, .root = 0});
  ++used.num_users;
  const std::size_t num_steps = used.steps.size();
  for (int root = 1; root < 40; ++root) group->plan({.kind = Kind::kBroadcast, .root = root});
  EXPECT_EQ(&group->plan({.kind = Kind::kBroadcast, .root = 0}), &used);
  EXPECT_EQ(used.steps.size(), num_steps);
  --used.num_users;
}

// In every long row of numbers, and in every second or tenth of them, members wait for one another now and then.
TEST(Group, MembersWaitForOneAnotherAtRegularIntervals) {
  for (const std::uint64_t stride : {1ULL, 2ULL, 3ULL, 10ULL, 64ULL, 128ULL, 1ULL << 32}) {
    std::uint32_t last = 0;
    std::uint32_t longest = 0;
    for (std::uint32_t i = 0; i < 200'000; ++i) {
      if (!waits_first(i * stride)) continue;
      longest = std::max(longest, i - last);
      last = i;
    }
    EXPECT_LE(longest, 400U) << "stride " << stride;
  }
}

// What a peer may claim.
class Claims : public ::testing::Test {
 protected:
  // PE 1 sends these bytes to the engine of PE 0; what the job fails with.
  std::string failure_of(std::span<const std::byte> bytes) {
    const runtime::HandlerId handler = job_.runtime(1).models().front().range.first_handler;
    runtime::MessagePtr message = runtime::Message::create(job_.runtime(1), handler, bytes.size());
    message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
    std::memcpy(message->payload(), bytes.data(), bytes.size());
    job_.runtime(1).send(0, std::move(message));
    int turns = 0;
    return job_.run_until([&] { return ++turns > 1000; });
  }
  std::string failure_of(const StepHeader& header) {
    return failure_of(std::as_bytes(std::span(&header, 1)));
  }

  testing::CollectiveJob job_{2, {0, 1}};
  std::shared_ptr<Group> group_ = job_.group(0);
};

TEST_F(Claims, AShortMessageIsRefused) {
  const std::vector<std::byte> bytes(sizeof(StepHeader) - 1);
  EXPECT_NE(failure_of(bytes).find("is shorter than its header"), std::string::npos);
}

TEST_F(Claims, ASenderThatIsElsewhereIsRefused) {
  EXPECT_NE(failure_of({.group = testing::CollectiveJob::kGroup, .from = 0, .to = 0}).find("names a sender"),
            std::string::npos);
}

TEST_F(Claims, ASenderBeyondTheGroupIsRefused) {
  EXPECT_NE(failure_of({.group = testing::CollectiveJob::kGroup, .from = 2, .to = 0}).find("names a sender"),
            std::string::npos);
}

TEST_F(Claims, ANegativeSenderIsRefused) {
  EXPECT_NE(failure_of({.group = testing::CollectiveJob::kGroup, .from = -1, .to = 0}).find("names a sender"),
            std::string::npos);
}

// The group comes later than a message of a PE that is not the member.
TEST_F(Claims, AKeptMessageOfAnotherSenderIsRefused) {
  group_ = nullptr;
  EXPECT_EQ(failure_of({.group = testing::CollectiveJob::kGroup, .from = 1, .to = 0, .round = 0}), "");
  const auto wrong = job_.engine(0).group(testing::CollectiveJob::kGroup, {0, 0}, 0);
  collective::Run run(*wrong, {.kind = Kind::kAllgather});
  EXPECT_THROW(run.start(), Error);
}

TEST_F(Claims, AnErrorThatDoesNotUnpackIsRefused) {
  std::vector<std::byte> bytes(sizeof(StepHeader) + 20, std::byte{0xff});
  const StepHeader header{
      .group = testing::CollectiveJob::kGroup, .from = 1, .to = 0, .flags = StepHeader::kFailed};
  std::memcpy(bytes.data(), &header, sizeof header);
  collective::Run run(*group_, {.kind = Kind::kBarrier});
  run.start();
  EXPECT_NE(failure_of(bytes).find("PE 0"), std::string::npos);
}

// A question is for the owner of the group alone. It has none here.
TEST_F(Claims, AQuestionIsNotKept) {
  EXPECT_EQ(
      failure_of(
          {.group = testing::CollectiveJob::kGroup, .from = 1, .to = 0, .flags = StepHeader::kQuestion}),
      "");
  EXPECT_EQ(group_->inbox().num_kept(), 0U);
}

// It stays, and no call takes it.
TEST_F(Claims, ARoundThatNoCallHasIsKept) {
  EXPECT_EQ(failure_of({.group = testing::CollectiveJob::kGroup, .from = 1, .to = 0, .round = 999}), "");
  EXPECT_EQ(group_->inbox().num_kept(), 1U);
}

}  // namespace
}  // namespace weft::collective
