// Chares that are protected in the memory of a job, and recovered by the next incarnation: another job with the same memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/observer.h"

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

struct Fragile : Chare<Fragile> {
  void pup(Pup& p) {
    if (is_broken) throw std::runtime_error("it is broken");
    p | is_broken;
  }
  void set(bool broken) { is_broken = broken; }
  bool is_broken = false;
};

// What each PE keeps.
struct Memories {
  explicit Memories(int num_pes) : states(static_cast<std::size_t>(num_pes)) {}
  void give_to(InProcessJob& job, std::uint32_t incarnation) {
    for (int pe = 0; pe < job.num_pes(); ++pe) {
      ProtectedState& state = *states[static_cast<std::size_t>(pe)];
      state.incarnation = incarnation;
      job.runtime(pe).model<Chares>().checkpoints().keep_in(&state, {});
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
    ++manifest.checkpoint;
    state->commit(state->committed(), manifest);
  }
  std::string error;
  EXPECT_EQ(recovered(memories, error), "");
  EXPECT_TRUE(says(error, "the manifest of the protected state does not suit the blocks of PE")) << error;
}

// The PEs of a job that has another number of them: those that kept something, and new ones.
Memories of_other_pes(Memories& before, const std::vector<std::size_t>& left, std::size_t num_new) {
  Memories memories(static_cast<int>(left.size() + num_new));
  for (std::size_t i = 0; i < left.size(); ++i) memories.states[i] = std::move(before.states[left[i]]);
  for (std::size_t i = left.size(); i < memories.states.size(); ++i) memories.states[i].emplace();
  return memories;
}

TEST(Protection, FewerOrMorePesRecoverAll) {
  for (const auto& [left, num_new] : std::vector<std::pair<std::vector<std::size_t>, std::size_t>>{
           {{0, 2}, 0}, {{3, 1}, 0}, {{1, 2, 3}, 0}, {{0, 1, 2, 3}, 2}, {{2, 0}, 5}}) {
    Memories before = protected_wanderers(4);
    Memories memories = of_other_pes(before, left, num_new);
    std::string error;
    EXPECT_EQ(recovered(memories, error, 2), "");
    EXPECT_EQ(error, "");
    // Two PEs have each block now, so any of them may be lost.
    memories.lose(1);
    EXPECT_EQ(recovered(memories, error), "");
    EXPECT_EQ(error, "");
  }
}

TEST(Protection, ABlockThatNoneOfFewerPesHasIsNamed) {
  Memories before = protected_wanderers(4);
  Memories memories = of_other_pes(before, {0, 1}, 0);
  std::string error;
  EXPECT_EQ(recovered(memories, error), "");
  EXPECT_TRUE(says(error, "the chares that PE 2 of 4 had protected cannot be recovered")) << error;
}

TEST(Protection, PesThatStayHaveAllBlocksOfAStateThatIsProtectedForAResize) {
  Memories memories(3);
  ProtectedState::ResizePlan plan{7, 2, {1}};
  std::uint32_t carried_out = 0;
  {
    InProcessJob job(3);
    for (auto& state : memories.states) {
      state.emplace();
      state->resize_plan = [&plan] { return plan; };
    }
    memories.give_to(job, 0);
    memories.states[0]->on_protected = [&](std::uint64_t, std::uint32_t number) {
      carried_out = number;
      plan = {};  // the launcher cannot do it after all, so that main goes on
      job.runtime(0).model<Chares>().checkpoints().resize_plan_changed();
    };
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto wanderers = Array<Wanderer>::create(runtime, {6});
      for (std::uint64_t i = 0; i < 6; ++i) co_await wanderers[i].call<&Wanderer::add>(static_cast<int>(i));
      co_await protect(runtime, wanderers, 17);
    }),
              "");
  }
  EXPECT_EQ(carried_out, 7u);
  for (const std::size_t pe : {0, 2}) {
    for (std::uint32_t block = 0; block < 3; ++block)
      EXPECT_NE(memories.states[pe]->find({memories.states[pe]->committed(), block}), nullptr);
  }
  Memories smaller = of_other_pes(memories, {2}, 0);
  std::string error;
  EXPECT_EQ(recovered(smaller, error), "");
  EXPECT_EQ(error, "");
}

TEST(Protection, AResizeNeedsALauncherThatPermitsIt) {
  Memories memories(1);
  memories.states[0].emplace();
  std::uint32_t asked = 0;
  memories.states[0]->ask_for_resize = [&asked](std::uint32_t num_pes) {
    asked = num_pes;
    return base::Status();
  };
  InProcessJob job(1);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    EXPECT_THROW(static_cast<void>(resize(runtime, 2)), base::Error);
    memories.give_to(job, 0);
    EXPECT_THROW(static_cast<void>(resize(runtime, 0)), base::Error);
    const Future<> accepted = resize(runtime, 2);
    EXPECT_EQ(asked, 2u);
    const Future<> refused = resize(runtime, 3);
    Checkpoints& checkpoints = runtime.model<Chares>().checkpoints();
    checkpoints.resize_answered("");
    checkpoints.resize_answered("another one is under way");
    checkpoints.resize_answered("");  // that of a PE that drains
    EXPECT_EQ(co_await error_of(accepted), "");
    EXPECT_TRUE(says(co_await error_of(refused), "under way"));
  }),
            "");
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

TEST(Protection, AnElementThatCannotBePackedLeavesNoBlocksOnAnyPe) {
  Memories memories(3);
  for (auto& state : memories.states) state.emplace();
  InProcessJob job(3);
  memories.give_to(job, 0);
  EXPECT_EQ(job.run([&memories](Runtime& runtime) -> Task<> {
    auto elements = Array<Fragile>::create(runtime, {3});
    co_await elements[1].call<&Fragile::set>(true);
    EXPECT_TRUE(says(co_await error_of(protect(runtime, elements)), "it is broken"));
    for (const auto& state : memories.states) EXPECT_TRUE(state->block_ids().empty());
    co_await elements[1].call<&Fragile::set>(false);
    co_await protect(runtime, elements);
    for (const auto& state : memories.states) EXPECT_EQ(state->block_ids().size(), 2u);
  }),
            "");
}

// Loses the blocks of its PE when that is told to commit a state.
struct LosesBlocks : runtime::Observer {
  explicit LosesBlocks(ProtectedState& all) : state(all) {}
  void span_began(const runtime::SpanEvent& span) override {
    if (span.name != "commit") return;
    for (const ProtectedState::BlockId& id : state.block_ids()) state.drop(id.state);
  }
  ProtectedState& state;
};

// The other PEs have dropped the state before, so it cannot count any more.
TEST(Protection, AStateThatOnePeCannotCommitEndsTheJob) {
  for (const std::size_t pe : {0, 1, 2}) {
    Memories memories(3);
    for (auto& state : memories.states) state.emplace();
    InProcessJob job(3);
    memories.give_to(job, 0);
    LosesBlocks observer(*memories.states[pe]);
    bool goes_on = false;
    const std::string failure = job.run([&](Runtime& runtime) -> Task<> {
      auto counters = Array<Counter>::create(runtime, {4});
      co_await protect(runtime, counters);
      job.runtime(static_cast<int>(pe)).set_observer(&observer);
      static_cast<void>(co_await error_of(protect(runtime, counters)));
      goes_on = true;
    });
    job.runtime(static_cast<int>(pe)).set_observer(nullptr);
    EXPECT_TRUE(says(failure, "not all PEs can keep the state that is protected")) << failure;
    EXPECT_FALSE(goes_on);
  }
}

// From the state that the PE has written until it is told to drop it, the process gets little memory.
struct TakesMemory : runtime::Observer {
  void span_ended(const runtime::SpanEvent& span) override {
    if (span.name != "write") return;
    rlim_t used_pages = 0;
    std::ifstream("/proc/self/statm") >> used_pages;
    getrlimit(RLIMIT_AS, &before);
    rlimit limited = before;
    limited.rlim_cur =
        used_pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (static_cast<rlim_t>(8) << 20);
    is_limited = setrlimit(RLIMIT_AS, &limited) == 0;
  }
  void span_began(const runtime::SpanEvent& span) override {
    if (span.name == "drop blocks") end();
  }
  // Returns whether it had begun.
  bool end() { return std::exchange(is_limited, false) && setrlimit(RLIMIT_AS, &before) == 0; }

  rlimit before{};
  bool is_limited = false;
};

[[maybe_unused]] Task<bool> lacks_memory(Future<> future) {  // AddressSanitizer leaves its test out
  try {
    co_await future;
  } catch (const std::bad_alloc&) {
    co_return true;
  }
  co_return false;
}

TEST(Protection, AStateWhoseCommitTakesTooMuchMemoryIsDroppedOnAllPes) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends the process when an allocation fails";
#else
  Memories memories(2);
  for (auto& state : memories.states) state.emplace();
  InProcessJob job(2);
  memories.give_to(job, 0);
  TakesMemory observer;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {4});
    auto keeper = Singleton<Keeper>::create(runtime, 1);
    co_await protect(runtime, counters);
    std::string large(std::size_t{40} << 20, 'x');
    job.runtime(0).set_observer(&observer);
    EXPECT_TRUE(co_await lacks_memory(protect(runtime, counters, large)));
    job.runtime(0).set_observer(nullptr);
    EXPECT_FALSE(observer.end()) << "the state was not dropped";
    for (const auto& state : memories.states) EXPECT_EQ(state->block_ids().size(), 2u);
    EXPECT_EQ(co_await keeper.element().call<&Keeper::keep>(counters), "");
  }),
            "");
#endif
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
