// Chares that are protected in the memory of a job, and recovered by the next incarnation: another job with the same memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/protected_state.h"
#include "models/chare/checkpoint/checkpoints.h"
#include "tests/unit/chare/saved_chares.h"

namespace weft::chare::saved {
namespace {

using checkpoint_files::Block;
using checkpoint_files::Manifest;
using checkpoint_files::ProtectedState;

// Protects from its own PE.
struct Keeper : Chare<Keeper> {
  Task<std::string> keep(Array<Counter> counters) {
    co_return co_await error_of(protect(runtime(), counters));
  }
};

struct Wanderer : Chare<Wanderer> {
  Wanderer() = default;
  explicit Wanderer(Moved) {}
  void pup(Pup& p) { p | count; }
  void go(int to_pe) { migrate(to_pe); }
  int add(int value) { return count += value; }
  int count = 0;
};

// What each PE keeps.
struct Memories {
  explicit Memories(int num_pes) : states(static_cast<std::size_t>(num_pes)) {}
  void give_to(InProcessJob& job, std::uint32_t incarnation) {
    for (int pe = 0; pe < job.num_pes(); ++pe) {
      ProtectedState& state = *states[static_cast<std::size_t>(pe)];
      state.incarnation = incarnation;
      job.runtime(pe).model<Chares>().checkpoints().keep_in(&state);
    }
  }
  void lose(std::size_t pe) { states[pe].emplace(); }

  std::vector<std::optional<ProtectedState>> states;
};

Memories protected_wanderers(int num_pes) {
  Memories memories(num_pes);
  for (auto& state : memories.states) state.emplace();
  InProcessJob job(num_pes);
  memories.give_to(job, 0);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto wanderers = Array<Wanderer>::create(runtime, {6});
    for (std::uint64_t i = 0; i < 6; ++i) co_await wanderers[i].call<&Wanderer::add>(static_cast<int>(i));
    wanderers[0].send<&Wanderer::go>(runtime.num_pes() - 1);
    wanderers[5].send<&Wanderer::go>(0);
    co_await runtime.quiescence();
    co_await protect(runtime, wanderers, 17);
    co_await wanderers[1].call<&Wanderer::add>(100);  // is lost
  }),
            "");
  return memories;
}

// How the job that begins again ends, and what recover() says.
std::string recovered(Memories& memories, std::string& error, int times = 1) {
  InProcessJob job(static_cast<int>(memories.states.size()));
  memories.give_to(job, 1);
  return job.run([&error, times](Runtime& runtime) -> Task<> {
    for (int time = 0; time < times; ++time) {
      Array<Wanderer> wanderers;
      int step = 0;
      try {
        EXPECT_EQ(co_await recover(runtime, wanderers, step), 1);
      } catch (const base::Error& failed) {
        error = failed.what();
        continue;
      }
      EXPECT_EQ(step, 17);
      for (std::uint64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(co_await wanderers[i].call<&Wanderer::add>(0), static_cast<int>(i));
      }
    }
  });
}

TEST(Protection, AnyPeMayBeLostAlsoOfElementsThatHadMoved) {
  for (std::size_t lost = 0; lost < 4; ++lost) {
    Memories memories = protected_wanderers(4);
    memories.lose(lost);
    std::string error;
    EXPECT_EQ(recovered(memories, error), "");
    EXPECT_EQ(error, "");
  }
}

TEST(Protection, MayBeRecoveredTwiceInOneJob) {
  Memories memories = protected_wanderers(3);
  memories.lose(1);
  std::string error;
  EXPECT_EQ(recovered(memories, error, 2), "");
  EXPECT_EQ(error, "");
}

TEST(Protection, APeAndItsBuddyAreNamed) {
  Memories memories = protected_wanderers(4);
  memories.lose(1);
  memories.lose(2);
  std::string error;
  EXPECT_EQ(recovered(memories, error), "");
  EXPECT_TRUE(says(error, "the chares of PE 1 cannot be recovered")) << error;
}

TEST(Protection, AManifestOfAnotherJobIsRefused) {
  Memories memories = protected_wanderers(3);
  for (auto& state : memories.states) {
    Manifest manifest = state->manifest();
    while (manifest.files.size() > 1) {
      manifest.files.front().num_elements += manifest.files.back().num_elements;
      manifest.files.pop_back();
    }
    state->commit(state->committed(), manifest);
  }
  std::string error;
  EXPECT_EQ(recovered(memories, error), "");
  EXPECT_TRUE(says(error, "the manifest of the protected state does not suit the blocks of PE")) << error;
}

TEST(Protection, ABlockThatIsNotWholeIsRefused) {
  Memories memories = protected_wanderers(3);
  for (std::uint32_t pe = 0; pe < 3; ++pe) {
    ProtectedState& state = *memories.states[pe];
    const checkpoint_files::BlockPtr whole = state.find({state.committed(), pe});
    const auto part = std::make_shared<Block>();
    part->append(whole->data(), whole->size() - 1);
    state.put({state.committed(), pe}, part);
  }
  std::string error;
  EXPECT_EQ(recovered(memories, error), "");
  EXPECT_TRUE(says(error, "the protected state of PE")) << error;
}

TEST(Protection, TwoPesThatProtectAtOnceAreToldSoAndMayTryAgain) {
  Memories memories(2);
  for (auto& state : memories.states) state.emplace();
  InProcessJob job(2);
  memories.give_to(job, 0);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {4});
    auto keeper = Singleton<Keeper>::create(runtime, 1);
    co_await runtime.quiescence();
    auto theirs = keeper.element().call<&Keeper::keep>(counters);
    const std::string own_error = co_await error_of(protect(runtime, counters));
    const std::string their_error = co_await theirs;
    EXPECT_TRUE(!own_error.empty() || !their_error.empty());
    for (const std::string& error : {own_error, their_error}) {
      EXPECT_TRUE(error.empty() || says(error, "protect")) << error;
    }
    co_await protect(runtime, counters);
    EXPECT_EQ(co_await keeper.element().call<&Keeper::keep>(counters), "");
  }),
            "");
}

}  // namespace
}  // namespace weft::chare::saved
