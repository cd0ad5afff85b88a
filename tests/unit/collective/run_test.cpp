// Calls of the engine on members that come late, overlap and share PEs, against a plain reference.
#include "collective/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <random>
#include <string>
#include <tuple>

#include "tests/unit/collective/collective_job.h"
#include "tests/unit/collective/expected_call.h"

namespace weft::collective {
namespace {

// Sizes, members for each PE, machine, hosts of the PEs.
class Runs : public ::testing::TestWithParam<std::tuple<int, int, const char*, std::vector<int>>> {
 protected:
  static std::vector<int> pes() {
    const int size = std::get<0>(GetParam());
    const int per_pe = std::get<1>(GetParam());
    std::vector<int> pes;
    for (int place = 0; place < size; ++place) pes.push_back(place / per_pe);
    return pes;
  }
  static runtime::RuntimeOptions options() {
    runtime::RuntimeOptions options;
    options.host_of_pe = std::get<3>(GetParam());
    return options;
  }
  Runs() : job_(pes().back() + 1, pes(), std::get<2>(GetParam()), options()) {
    for (int place = 0; place < job_.size(); ++place) groups_.push_back(job_.group(place));
  }

  // Lets all of them end. Returns the failure of the job, if it has one.
  std::string end(const std::deque<collective::Run>& runs) {
    return job_.run_until(
        [&] { return std::ranges::all_of(runs, [](const collective::Run& run) { return run.is_over(); }); });
  }

  testing::CollectiveJob job_;
  std::vector<std::shared_ptr<Group>> groups_;
};

TEST_P(Runs, RandomCallsOfMembersThatComeLate) {
  constexpr int kNumCalls = 220;  // in one of 64, members wait for one another first
  constexpr std::size_t kMostUnderWay = 3;
  const std::uint32_t seed = 20261128;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr Kind kKinds[] = {Kind::kBarrier,   Kind::kBroadcast, Kind::kReduce,        Kind::kReduceInOrder,
                             Kind::kAllreduce, Kind::kScan,      Kind::kExclusiveScan, Kind::kAllgather,
                             Kind::kAlltoall,  Kind::kGather,    Kind::kScatter};
  std::vector<ExpectedCall> calls;
  for (std::uint32_t number = 0; number < kNumCalls; ++number) {
    const std::size_t counts[] = {0, 1, 2, 30, 500};
    ExpectedCall& call = calls.emplace_back(ExpectedCall{
        kKinds[random() % std::size(kKinds)], static_cast<int>(random() % static_cast<unsigned>(job_.size())),
        counts[random() % 5], random() % 3 == 0, number});
    const bool has_direct_form =
        call.kind != Kind::kBarrier && call.kind != Kind::kGather && call.kind != Kind::kScatter;
    if (has_direct_form && random() % 2 == 0)
      call.form = Form::kDirect;
    else if (groups_[0]->form(call.kind, 8) == Form::kLeaders && random() % 4 > 0)
      call.form = Form::kLeaders;
  }
  struct State {
    std::size_t next = 0;
    std::deque<MemberCall> under_way;
  };
  std::vector<State> members(static_cast<std::size_t>(job_.size()));
  const auto turn = [&](std::size_t place) {
    State& member = members[place];
    while (!member.under_way.empty() && member.under_way.front().run().is_over()) {
      member.under_way.front().check();
      member.under_way.pop_front();
    }
    if (member.next < calls.size() && member.under_way.size() < kMostUnderWay && random() % 4 == 0) {
      member.under_way.emplace_back(*groups_[place], calls[member.next++]).run().start();
    }
    return member.next == calls.size() && member.under_way.empty();
  };
  ASSERT_EQ(job_.run_until([&] {
    bool all = true;
    for (std::size_t place = 0; place < members.size(); ++place) all &= turn(place);
    return all;
  }),
            "");
  for (const auto& group : groups_) {
    EXPECT_EQ(group->inbox().num_kept(), 0U);
    EXPECT_EQ(group->boards().num_posted(), 0U);
  }
}

TEST_P(Runs, BlocksOfDifferentSizesAreGathered) {
  const int size = job_.size();
  std::vector<std::vector<std::size_t>> begins(static_cast<std::size_t>(size));
  std::vector<std::vector<std::byte>> data(begins.size());
  std::vector<std::vector<std::byte>> expected(begins.size());
  std::deque<collective::Run> runs;
  for (int place = 0; place < size; ++place) {
    Group& group = *groups_[static_cast<std::size_t>(place)];
    const Form form = group.form(Kind::kAllgather, 30);
    auto& mine = begins[static_cast<std::size_t>(place)];
    auto& bytes = data[static_cast<std::size_t>(place)];
    for (int i = 0; i < size; ++i) {
      const int owner = group.place_of_block(form, i);
      mine.push_back(bytes.size());
      bytes.insert(bytes.end(), static_cast<std::size_t>(owner) * 3,
                   static_cast<std::byte>(owner == place ? place : 0xff));
      expected[static_cast<std::size_t>(place)].resize(bytes.size(), static_cast<std::byte>(owner));
    }
    mine.push_back(bytes.size());
    runs.emplace_back(
        group, Call{.kind = Kind::kAllgather, .form = form, .data = bytes.data(), .begins = mine.data()});
    runs.back().start();
  }
  ASSERT_EQ(end(runs), "");
  for (int place = 0; place < size; ++place) {
    EXPECT_FALSE(runs[static_cast<std::size_t>(place)].has_failed());
    EXPECT_EQ(data[static_cast<std::size_t>(place)], expected[static_cast<std::size_t>(place)]);
  }
}

// Of each block the bytes [2, 9), as far as it has them; the others stay.
TEST_P(Runs, PiecesOfBlocksAreGatheredDirectly) {
  const int size = job_.size();
  std::vector<std::size_t> begins;
  std::vector<std::size_t> ends;
  std::vector<std::byte> expected;
  for (int place = 0; place < size; ++place) {
    const std::size_t first = expected.size();
    const std::size_t size_bytes = static_cast<std::size_t>(place) * 3;
    expected.resize(first + size_bytes);
    begins.push_back(first + std::min<std::size_t>(size_bytes, 2));
    ends.push_back(first + std::min<std::size_t>(size_bytes, 9));
    for (std::size_t i = begins.back(); i < ends.back(); ++i) expected[i] = static_cast<std::byte>(place);
  }
  std::vector<std::vector<std::byte>> data(static_cast<std::size_t>(size));
  std::deque<collective::Run> runs;
  for (std::size_t place = 0; place < data.size(); ++place) {
    data[place].resize(expected.size());
    std::fill(data[place].begin() + static_cast<std::ptrdiff_t>(begins[place]),
              data[place].begin() + static_cast<std::ptrdiff_t>(ends[place]), static_cast<std::byte>(place));
    runs.emplace_back(*groups_[place], Call{.kind = Kind::kAllgather,
                                            .form = Form::kDirect,
                                            .data = data[place].data(),
                                            .begins = begins.data(),
                                            .ends = ends.data()});
    runs.back().start();
  }
  ASSERT_EQ(end(runs), "");
  for (std::size_t place = 0; place < data.size(); ++place) {
    EXPECT_FALSE(runs[place].has_failed());
    EXPECT_EQ(data[place], expected) << place;
  }
}

TEST_P(Runs, BlocksOfDifferentSizesAreReducedAndScattered) {
  const int size = job_.size();
  if ((size & (size - 1)) != 0) return;  // for a power of two
  const Combiner sum{[](void*, const std::byte* left, std::byte* right, std::size_t size_bytes) {
    for (std::size_t i = 0; i < size_bytes; ++i)
      right[i] = static_cast<std::byte>(std::to_integer<int>(left[i]) + std::to_integer<int>(right[i]));
    return true;
  }};
  std::vector<std::size_t> begins(1, 0);
  for (int place = 0; place < size; ++place)
    begins.push_back(begins.back() + static_cast<std::size_t>(place % 3) * 5);
  std::vector<std::vector<std::byte>> data(static_cast<std::size_t>(size));
  std::deque<collective::Run> runs;
  int total = 0;
  for (int place = 0; place < size; ++place) {
    auto& bytes = data[static_cast<std::size_t>(place)];
    bytes.assign(begins.back(), static_cast<std::byte>(place + 1));
    total += place + 1;
    runs.emplace_back(
        *groups_[static_cast<std::size_t>(place)],
        Call{.kind = Kind::kReduceScatter, .data = bytes.data(), .begins = begins.data(), .combiner = sum});
    runs.back().start();
  }
  ASSERT_EQ(end(runs), "");
  for (std::size_t place = 0; place < data.size(); ++place) {
    EXPECT_FALSE(runs[place].has_failed());
    for (std::size_t i = begins[place]; i < begins[place + 1]; ++i)
      EXPECT_EQ(data[place][i], static_cast<std::byte>(total)) << place;
  }
}

// All members end, and those that depend on a failed one know.
TEST_P(Runs, AFailureEndsTheCallAtAllMembers) {
  const int size = job_.size();
  std::vector<std::uint64_t> values(static_cast<std::size_t>(size));
  std::deque<collective::Run> runs;
  const Combiner failing{[](void*, const std::byte*, std::byte*, std::size_t) { return false; }};
  const Combiner working{[](void*, const std::byte*, std::byte*, std::size_t) { return true; }};
  for (int place = 0; place < size; ++place) {
    runs.emplace_back(*groups_[static_cast<std::size_t>(place)],
                      Call{.kind = Kind::kAllreduce,
                           .data = reinterpret_cast<std::byte*>(&values[static_cast<std::size_t>(place)]),
                           .block_bytes = 8,
                           .combiner = place == size - 1 ? failing : working});
    if (size == 1) runs.back().fail();
    runs.back().start();
  }
  ASSERT_EQ(end(runs), "");
  EXPECT_TRUE(runs.back().has_failed());
}

// The other members get the error of the first one that failed.
TEST_P(Runs, AnErrorTravels) {
  std::vector<std::uint64_t> values(static_cast<std::size_t>(job_.size()));
  std::deque<collective::Run> runs;
  const Combiner sum{[](void*, const std::byte*, std::byte*, std::size_t) { return true; }};
  for (int place = 0; place < job_.size(); ++place) {
    runs.emplace_back(*groups_[static_cast<std::size_t>(place)],
                      Call{.kind = Kind::kAllreduce,
                           .data = reinterpret_cast<std::byte*>(&values[static_cast<std::size_t>(place)]),
                           .block_bytes = 8,
                           .combiner = sum});
    if (place == job_.size() - 1) runs.back().fail(std::make_exception_ptr(std::bad_alloc()));
    runs.back().start();
  }
  ASSERT_EQ(end(runs), "");
  for (const collective::Run& run : runs) {
    ASSERT_NE(run.error(), nullptr);
    try {
      std::rethrow_exception(run.error());
    } catch (const base::RemoteError& error) {
      EXPECT_EQ(error.remote_message(), "std::bad_alloc");
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(&run, &runs.back());
    }
  }
}

// Messages that come before start() are kept.
TEST_P(Runs, ACallMayBeginBeforeItStarts) {
  std::deque<collective::Run> runs;
  for (int place = 0; place < job_.size(); ++place) {
    runs.emplace_back(*groups_[static_cast<std::size_t>(place)], Call{.kind = Kind::kBarrier});
    if (place > 0) runs.back().start();
  }
  int turns = 0;
  ASSERT_EQ(job_.run_until([&] { return ++turns > 100; }), "");
  EXPECT_FALSE(runs.front().is_over());
  runs.front().start();
  EXPECT_EQ(end(runs), "");
}

TEST_P(Runs, OtherSizesAreAFailure) {
  if (job_.size() < 2) return;
  std::vector<std::uint64_t> values(2 * static_cast<std::size_t>(job_.size()), 7);
  std::deque<collective::Run> runs;
  for (int place = 0; place < job_.size(); ++place) {
    runs.emplace_back(*groups_[static_cast<std::size_t>(place)],
                      Call{.kind = Kind::kBroadcast,
                           .data = reinterpret_cast<std::byte*>(&values[2 * static_cast<std::size_t>(place)]),
                           .block_bytes = place == 1 ? 16U : 8U});
    runs.back().start();
  }
  ASSERT_EQ(end(runs), "");
  EXPECT_TRUE(runs[1].has_failed());
  EXPECT_FALSE(runs[0].has_failed());
}

// Blocks that do not fit the boards, or that a member cannot read there, come in messages.
TEST_P(Runs, BlocksComeAlsoWithoutBoards) {
  std::deque<MemberCall> calls;
  job_.engine(job_.pe_of(job_.size() - 1)).boards().open_none();
  std::uint32_t number = 1;
  for (const Kind kind : {Kind::kAllgather, Kind::kAllreduce, Kind::kScan, Kind::kBroadcast})
    for (int i = 0; i < 9; ++i, ++number)
      for (const auto& group : groups_)
        calls.emplace_back(*group, ExpectedCall{kind, 0, 6000, false, number, Form::kDirect}).run().start();
  ASSERT_EQ(job_.run_until([&] {
    return std::ranges::all_of(calls, [](MemberCall& call) { return call.run().is_over(); });
  }),
            "");
  for (MemberCall& call : calls) call.check();
  for (const auto& group : groups_) EXPECT_EQ(group->boards().num_posted(), 0U);
}

// The parts of two members have the right sizes, and begin elsewhere.
TEST_P(Runs, PartsThatBeginElsewhereAreAFailure) {
  const int size = job_.size();
  if (size < 3) return;
  std::deque<collective::Run> runs;
  std::deque<std::vector<std::size_t>> begins;
  std::vector<std::vector<std::byte>> data(static_cast<std::size_t>(size));
  for (int place = 0; place < size; ++place) {
    std::vector<std::size_t>& mine = begins.emplace_back(1, 0);
    for (int i = 0; i < size; ++i)
      mine.push_back(mine.back() + (i == 0 && place != size - 1 ? std::size_t{4004} : std::size_t{4000}));
    data[static_cast<std::size_t>(place)].resize(mine.back());
    runs.emplace_back(
        *groups_[static_cast<std::size_t>(place)],
        Call{.kind = Kind::kReduceScatter,
             .form = Form::kDirect,
             .data = data[static_cast<std::size_t>(place)].data(),
             .begins = mine.data(),
             .combiner = {[](void*, const std::byte*, std::byte*, std::size_t) { return true; }}});
    runs.back().start();
  }
  ASSERT_EQ(end(runs), "");
  for (const collective::Run& run : runs) EXPECT_TRUE(run.has_failed());
}

TEST_P(Runs, ACoroutineAwaitsTheEnd) {
  int num_over = 0;
  const auto body = [](Group& group, int& over) -> Task<> {
    collective::Run run(group, {.kind = Kind::kBarrier, .number = 9});
    run.start();
    co_await Ended(run);
    EXPECT_TRUE(run.is_over());
    ++over;
  };
  for (int place = 0; place < job_.size(); ++place)
    job_.runtime(job_.pe_of(place))
        .spawn(body(*groups_[static_cast<std::size_t>(place)], num_over), "a member");
  EXPECT_EQ(job_.run_until([&] { return num_over == job_.size(); }), "");
}

using Hosts = std::vector<int>;

INSTANTIATE_TEST_SUITE_P(
    Groups, Runs,
    ::testing::Values(std::tuple(1, 1, "loopback", Hosts()), std::tuple(2, 1, "loopback", Hosts()),
                      std::tuple(5, 1, "loopback", Hosts()), std::tuple(9, 1, "loopback", Hosts()),
                      std::tuple(16, 1, "loopback", Hosts()), std::tuple(7, 3, "loopback", Hosts()),
                      std::tuple(4, 4, "loopback", Hosts()), std::tuple(3, 1, "ucx", Hosts())));

INSTANTIATE_TEST_SUITE_P(GroupsOnHosts, Runs,
                         ::testing::Values(std::tuple(5, 1, "loopback", Hosts{0, 0, 0, 1, 1}),
                                           std::tuple(8, 1, "loopback", Hosts{0, 1, 2, 0, 1, 2, 0, 3}),
                                           std::tuple(3, 1, "loopback", Hosts{0, 1, 2}),
                                           std::tuple(11, 1, "loopback",
                                                      Hosts{0, 0, 1, 2, 2, 2, 3, 3, 4, 4, 4}),
                                           std::tuple(7, 3, "loopback", Hosts{0, 1, 2}),
                                           std::tuple(4, 1, "ucx", Hosts{0, 0, 1, 1})));

}  // namespace
}  // namespace weft::collective
