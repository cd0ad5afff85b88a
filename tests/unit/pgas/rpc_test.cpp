#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/future_table.h"
#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::Team;
using pgas::World;

int add(int a, int b) { return a + b; }
int rank_and(World& world, int value) { return 100 * world.rank() + value; }
std::map<std::string, std::vector<double>> twice(std::map<std::string, std::vector<double>> values) {
  for (auto& [name, list] : values)
    for (double& value : list) value *= 2;
  return values;
}
int fails(int value) {
  if (value > 0) throw std::out_of_range("the value is " + std::to_string(value));
  return value;
}
std::string name_of(const Team& team, const std::string& prefix) {
  return prefix + std::to_string(team.rank()) + " of " + std::to_string(team.size());
}

// The runtime of the target finds where to write by this; each test has its own.
struct Log {
  std::vector<std::string> lines;
};
Log& shared_log() {
  static Log log;
  return log;
}
void note(World& world, std::string line) {
  shared_log().lines.push_back(std::to_string(world.rank()) + ": " + line);
}

Task<int> slow_sum(World& world, std::vector<int> values) {
  int sum = 0;
  for (const int value : values) {
    co_await runtime::yield_now(world.runtime());
    sum += value;
  }
  co_return sum;
}
Task<int> relay(World& world, int hops) {
  if (hops == 0) co_return world.rank();
  const int next = (world.rank() + 1) % world.size();
  const int last = co_await world.rpc<&relay>(next, hops - 1);
  co_return last;
}
Task<> slow_failure(World& world) {
  co_await runtime::yield_now(world.runtime());
  throw std::runtime_error("too late");
}
std::unique_ptr<int> boxed(int value) { return std::make_unique<int>(value); }

TEST(Rpc, GivesTheResultToItsCaller) {
  TeamJob job(3);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const int next = (world.rank() + 1) % 3;
    const int sum = co_await world.rpc<&add>(next, 20, 3);
    EXPECT_EQ(sum, 23);
    const int there = co_await world.rpc<&rank_and>(next, 5);
    EXPECT_EQ(there, 100 * next + 5);
    const int here = co_await world.rpc<&rank_and>(world.rank(), 6);
    EXPECT_EQ(here, 100 * world.rank() + 6);
    const std::unique_ptr<int> box = co_await world.rpc<&boxed>(next, 9);
    EXPECT_EQ(*box, 9);
    const int lambda = co_await world.rpc<[](int a) { return a * a; }>(next, 7);
    EXPECT_EQ(lambda, 49);
  }),
            "");
}

TEST(Rpc, PacksWhatPupPacks) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    if (world.rank() != 0) co_return;
    std::map<std::string, std::vector<double>> values;
    values["a"] = {1, 2};
    values["b"] = std::vector<double>(100000, 3.5);
    auto call = world.rpc<&twice>(1, values);
    values["a"][0] = 77;  // the call has its own
    const auto doubled = co_await call;
    EXPECT_EQ(doubled.at("a"), (std::vector<double>{2, 4}));
    EXPECT_EQ(doubled.at("b"), std::vector<double>(100000, 7.0));
    const std::string name = co_await world.rpc<&name_of>(1, "rank ");
    EXPECT_EQ(name, "rank 1 of 2");
  }),
            "");
}

struct Unpackable {
  template <class P>
  void pup(P&) {
    throw std::runtime_error("this value cannot be packed");
  }
};
void take(const Unpackable&) {}

TEST(Rpc, ArgumentsThatCannotBePackedLeaveNoFutureBehind) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    Runtime& runtime = world.runtime();
    const Future<int> before(runtime);
    const std::uint64_t next = before.state()->address().id + 1;
    EXPECT_THROW(static_cast<void>(world.rpc<&take>(1, Unpackable())), std::runtime_error);
    // The call has entered its future: a later one has a higher number. It is not there any more.
    const Future<int> after(runtime);
    EXPECT_EQ(after.state()->address().id, next + 1);
    EXPECT_EQ(runtime::FutureTable::of(runtime).find(next), nullptr);
    co_return;
  }),
            "");
}

TEST(Rpc, WaitsForTasks) {
  TeamJob job(4);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    std::vector<int> values;
    for (int i = 0; i < 10; ++i) values.push_back(i);
    const int sum = co_await world.rpc<&slow_sum>((world.rank() + 1) % 4, values);
    EXPECT_EQ(sum, 45);
    const int last = co_await world.rpc<&relay>(world.rank(), 9);
    EXPECT_EQ(last, (world.rank() + 9) % 4);
  }),
            "");
}

TEST(Rpc, AnExceptionReachesTheCaller) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    if (world.rank() != 0) co_return;
    try {
      co_await world.rpc<&fails>(1, 3);
      ADD_FAILURE() << "no exception";
    } catch (const RemoteError& error) {
      EXPECT_EQ(error.type(), "std::out_of_range");
      EXPECT_EQ(error.remote_message(), "the value is 3");
      EXPECT_NE(error.traceback().find("fails, a function that rank 1 of a team of 2 ran on PE 1"),
                std::string::npos)
          << error.traceback();
    }
    const std::string late = co_await failure_of(world.rpc<&slow_failure>(1));
    EXPECT_EQ(late, "too late");
    const int fine = co_await world.rpc<&fails>(1, 0);
    EXPECT_EQ(fine, 0);
  }),
            "");
}

TEST(Rpc, WithoutAResultItRuns) {
  shared_log().lines.clear();
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    if (world.rank() == 0) world.rpc_ff<&note>(1, "hello");
    co_await world.runtime().quiescence();
  }),
            "");
  EXPECT_EQ(shared_log().lines, std::vector<std::string>{"1: hello"});
}

TEST(Rpc, AnExceptionWithoutACallerEndsTheJob) {
  TeamJob job(2);
  const std::string failure = job.run_on_all([](World& world) -> Task<> {
    if (world.rank() == 0) world.rpc_ff<&fails>(1, 8);
    co_await world.runtime().quiescence();
    co_await world.barrier();
  });
  EXPECT_NE(failure.find("PE 1: an exception without an awaiting caller left "), std::string::npos)
      << failure;
  EXPECT_NE(failure.find("the value is 8"), std::string::npos) << failure;
  EXPECT_NE(failure.find("fails"), std::string::npos) << failure;
}

TEST(Rpc, RefusesARankThatDoesNotExist) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    EXPECT_THROW(world.rpc_ff<&note>(2, "nobody"), Error);
    EXPECT_THROW(static_cast<void>(world.rpc<&add>(-1, 1, 2)), Error);
    co_return;
  }),
            "");
}

TEST(Rpc, APackedCallRunsLater) {
  shared_log().lines.clear();
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    if (world.rank() == 0) {
      const pgas::PackedCall call = pgas::pack_call<&note>(world.runtime(), "packed");
      pgas::run_packed(world, base::unpack<pgas::PackedCall>(base::pack(call)));
      EXPECT_TRUE(shared_log().lines.empty());
    }
    EXPECT_THROW(pgas::run_packed(world, {1'000'000, {}}), Error);
    co_await world.runtime().quiescence();
  }),
            "");
  EXPECT_EQ(shared_log().lines, std::vector<std::string>{"0: packed"});
}

// --- What a peer sends is a claim

std::string failure_after(const std::function<void(World&, runtime::HandlerId)>& send) {
  TeamJob job(2);
  const runtime::HandlerId first = first_team_handler(job.world(0));
  return job.run_on_all([&](World& world) -> Task<> {
    if (world.rank() == 0) send(world, first);
    co_await world.runtime().quiescence();
    co_await world.barrier();
    co_await world.barrier();
  });
}

TEST(Rpc, RefusesACallThatCannotBe) {
  const auto call = [](pgas::CallHeader header) {
    return failure_after([header](World& world, runtime::HandlerId first) {
      const auto handler = static_cast<runtime::HandlerId>(first + pgas::TeamTable::kNumHandlers);
      world.runtime().send(1, runtime::Message::pack(world.runtime(), handler, header));
    });
  };
  EXPECT_NE(call({{}, 0, 999'999, 0}).find("names function 999999"), std::string::npos);
  EXPECT_NE(call({{}, 0, 0, 7}).find("for PE 7, which this job does not have"), std::string::npos);
  EXPECT_NE(call({{5, 1}, 0, 0, 0}).find("the team 1 of PE 5, which cannot exist"), std::string::npos);
  EXPECT_NE(call({{1, 0}, 0, 0, 0}).find("the team 0 of PE 1, which cannot exist"), std::string::npos);
}

TEST(Rpc, RefusesAMessageThatIsTooShort) {
  for (runtime::HandlerId offset = 0; offset < pgas::Teams::kNumHandlers; ++offset) {
    const std::string failure = failure_after([offset](World& world, runtime::HandlerId first) {
      world.runtime().send(1, runtime::Message::pack(world.runtime(), first + offset, std::uint16_t{1}));
    });
    EXPECT_NE(failure.find("a message from PE 0"), std::string::npos) << failure;
  }
}

}  // namespace
}  // namespace weft::testing
