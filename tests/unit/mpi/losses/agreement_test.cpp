// Agreements with members that are lost at any moment, over messages in any order: random schedules with printed seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "models/mpi/survival/agreements.h"

namespace weft::mpi {
namespace {

// Members of agreements, which each calls in order without waiting. A lost member's last messages may arrive or not, before or after the others hear of the loss.
class Simulated {
 public:
  struct Way final : AgreementWay {
    Simulated* all = nullptr;
    int rank = 0;
    std::vector<bool> knows_lost;
    int num_sends_left = 1 << 30;  // then the member is lost

    void send(int to, std::vector<std::byte> message) override {
      if (all->is_dead[static_cast<std::size_t>(rank)]) return;
      if (num_sends_left-- == 0) return all->kill(rank);
      all->pipes[static_cast<std::size_t>(rank) * all->size + static_cast<std::size_t>(to)].push_back(
          std::move(message));
    }
    bool is_lost(int other) const override {
      return static_cast<std::size_t>(other) < all->size && knows_lost[static_cast<std::size_t>(other)];
    }
    std::uint64_t new_context() override {
      return (static_cast<std::uint64_t>(rank) + 1) << 32 | ++num_contexts;
    }
    std::uint32_t num_contexts = 0;
  };

  explicit Simulated(std::size_t size_in, std::uint32_t num_agreements_in = 1, bool frees_in = false)
      : size(size_in),
        num_agreements(num_agreements_in),
        frees(frees_in),
        is_dead(size),
        pipes(size * size),
        results(size),
        num_called(size),
        has_freed(size) {
    for (std::size_t i = 0; i < size; ++i) {
      ways.push_back(std::make_unique<Way>());
      ways[i]->all = this;
      ways[i]->rank = static_cast<int>(i);
      ways[i]->knows_lost.resize(size);
      agreements.push_back(std::make_unique<Agreements>(*ways[i]));
    }
  }
  void kill(int rank) { is_dead[static_cast<std::size_t>(rank)] = true; }
  // The next agreement.
  void call(std::size_t i) {
    const std::uint32_t number = num_called[i]++;
    Members members;
    for (std::size_t rank = 0; rank < size; ++rank) members.push_back(static_cast<int>(rank));
    AgreementGift gift{~(1 << i) ^ static_cast<int>(number << 16), PlaceSet(size), PlaceSet(size)};
    for (std::size_t rank = 0; rank < size; ++rank)
      if (ways[i]->knows_lost[rank]) gift.lost.add(rank);
    agreements[i]->enter({7, number}, members, static_cast<int>(i), gift,
                         [this, i, number](const AgreementResult& result) {
                           if (is_dead[i]) return;  // in the middle of telling the others
                           ASSERT_EQ(results[i].size(), number);
                           results[i].push_back(result);
                         });
  }
  // Does one thing that can be done now. Returns false if there is none.
  bool step(std::mt19937& random) {
    std::vector<std::pair<int, std::size_t>> possible;
    for (std::size_t i = 0; i < size; ++i) {
      if (is_dead[i]) continue;
      if (num_called[i] < num_agreements) possible.emplace_back(0, i);
      if (frees && num_called[i] == num_agreements && !has_freed[i]) possible.emplace_back(3, i);
      for (std::size_t other = 0; other < size; ++other) {
        if (is_dead[other] && !ways[i]->knows_lost[other]) possible.emplace_back(1, i * size + other);
        if (!pipes[other * size + i].empty()) possible.emplace_back(2, other * size + i);
      }
    }
    if (possible.empty()) return false;
    const auto [what, which] = possible[random() % possible.size()];
    if (what == 0) {
      call(which);
    } else if (what == 1) {
      ways[which / size]->knows_lost[which % size] = true;
      agreements[which / size]->note_loss();
    } else if (what == 3) {
      has_freed[which] = true;
      agreements[which]->leave({7, num_agreements - 1});
    } else {
      const std::vector<std::byte> message = std::move(pipes[which].front());
      pipes[which].pop_front();
      agreements[which % size]->arrive(static_cast<int>(which / size), message);
    }
    return true;
  }

  std::size_t size;
  std::uint32_t num_agreements;
  bool frees;  // the communicator, after the last call
  std::vector<bool> is_dead;
  std::vector<std::deque<std::vector<std::byte>>> pipes;  // from * size + to
  std::vector<std::vector<AgreementResult>> results;      // by member, then by agreement
  std::vector<std::uint32_t> num_called;
  std::vector<bool> has_freed;
  std::vector<std::unique_ptr<Way>> ways;
  std::vector<std::unique_ptr<Agreements>> agreements;
};

// Those that are lost after their decision count as well.
void expect_same_results(const Simulated& members, std::size_t number) {
  const AgreementResult* first = nullptr;
  for (std::size_t i = 0; i < members.size; ++i) {
    if (members.results[i].size() <= number) {
      EXPECT_TRUE(members.is_dead[i]) << "rank " << i << " lives and has no result of agreement " << number;
      continue;
    }
    const AgreementResult& result = members.results[i][number];
    if (first == nullptr) first = &result;
    EXPECT_EQ(result.flag, first->flag);
    EXPECT_EQ(result.flag >> 16, ~static_cast<int>(number));
    EXPECT_EQ(result.contexts, first->contexts);
    EXPECT_EQ(result.lost.words(), first->lost.words());
    EXPECT_EQ(result.has_unacknowledged, first->has_unacknowledged);
    for (std::size_t rank = 0; rank < members.size; ++rank) {
      if (members.is_dead[rank]) continue;
      EXPECT_FALSE(result.lost.has(rank)) << "rank " << rank << " lives";
      EXPECT_EQ(result.flag & (1 << rank), 0) << "what rank " << rank << " gave is not in the result";
    }
  }
}

void run_schedule(std::uint32_t seed, std::uint32_t num_agreements, bool frees = false) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::size_t size = 1 + random() % 6;
  Simulated members(size, num_agreements, frees);
  // Some members are lost after so many of their messages, in the middle of telling the others for example.
  for (std::size_t i = 0; i + 1 < size; ++i) {
    const std::size_t victim = random() % size;
    if (random() % 2 == 0) {
      const std::size_t most = ((3 * num_agreements) + (frees ? 2 : 0)) * size;
      members.ways[victim]->num_sends_left = static_cast<int>(random() % most);
    }
  }
  for (int steps = 0; members.step(random); ++steps) ASSERT_LT(steps, 100000);
  for (std::size_t number = 0; number < num_agreements; ++number) expect_same_results(members, number);
  for (std::size_t i = 0; i < size && frees; ++i)
    EXPECT_TRUE(members.is_dead[i] || members.agreements[i]->size() == 0) << "rank " << i << " keeps some";
}

TEST(Agreement, IsTheSameAtAllWhoeverIsLost) {
  for (std::uint32_t seed = 1; seed <= 5000; ++seed) {
    run_schedule(seed, 1);
    if (::testing::Test::HasFailure()) return;
  }
}

// A member that has decided one of them and has begun the next one still answers for it.
TEST(Agreement, IsTheSameAtAllIfMembersCallSeveralWithoutWaiting) {
  for (std::uint32_t seed = 1; seed <= 2000; ++seed) {
    run_schedule(seed, 2 + seed % 2);
    if (::testing::Test::HasFailure()) return;
  }
}

// Also the last one, for which late members may ask.
TEST(Agreement, IsForgottenWhenAllLivingMembersHaveFreedTheCommunicator) {
  for (std::uint32_t seed = 1; seed <= 10000; ++seed) {
    run_schedule(seed, 1 + seed % 3, true);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Agreement, IsKeptWhileALivingMemberHasNotFreedTheCommunicator) {
  std::mt19937 random(1);
  Simulated members(3);
  while (members.step(random)) {
  }
  for (const std::size_t i : {0, 1}) members.agreements[i]->leave({7, 0});
  while (members.step(random)) {
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(members.agreements[i]->size(), 1U) << "rank " << i;
  members.agreements[2]->leave({7, 0});
  while (members.step(random)) {
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(members.agreements[i]->size(), 0U) << "rank " << i;
}

TEST(Agreement, RefusesMessagesThatCannotBe) {
  Simulated members(3);
  members.call(1);
  const auto arrive = [&](int from, std::vector<std::uint32_t> words) {
    words.insert(words.begin(), {7, 0, 0});  // the name
    const std::span<const std::uint32_t> all(words);
    members.agreements[1]->arrive(from, std::as_bytes(all));
  };
  EXPECT_THROW(members.agreements[1]->arrive(0, {}), base::Error);  // no name
  EXPECT_THROW(arrive(0, {}), base::Error);
  EXPECT_THROW(arrive(0, {17}), base::Error);    // no type
  EXPECT_THROW(arrive(0, {0, 1}), base::Error);  // a gift that ends too early
  EXPECT_THROW(arrive(0, {2, 0}), base::Error);  // an acceptance with something behind it
  EXPECT_THROW(arrive(0, {5}), base::Error);     // all have left, and this process has not
  EXPECT_THROW(arrive(5, {2}), base::Error);     // no member
}

}  // namespace
}  // namespace weft::mpi
