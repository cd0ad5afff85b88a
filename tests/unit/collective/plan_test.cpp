// Plans, carried out without messages: values are texts, which show what was combined with what and in which order, and messages are
// delivered in a random order.
#include "collective/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace weft::collective {
namespace {

using Blocks = std::vector<std::string>;

struct PlannedMessage {
  int to;
  int from;
  int round;
  Blocks blocks;
};

// All members of a group, each with its plan.
class PlannedGroup {
 public:
  PlannedGroup(const PlanChoice& choice, int size, const runtime::HostGroups* hosts = nullptr) {
    for (int place = 0; place < size; ++place) plans.push_back(make_plan(choice, {place, size}, hosts));
    blocks.resize(static_cast<std::size_t>(size));
    next.resize(static_cast<std::size_t>(size));
  }

  // Carries the plans out, members and messages in random order.
  void run(std::mt19937& random) {
    EXPECT_TRUE(run_without(-1, random).empty()) << "a message that no member awaits";
    for (std::size_t i = 0; i < plans.size(); ++i)
      EXPECT_EQ(next[i], plans[i].size()) << "member " << i << " waits";
  }
  // Until no member but that one can move. Returns the messages that wait.
  std::vector<PlannedMessage> run_without(int late, std::mt19937& random) {
    std::vector<PlannedMessage> waiting;
    bool moves = true;
    while (moves) {
      moves = false;
      std::vector<std::size_t> order(plans.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t place : order)
        if (static_cast<int>(place) != late) moves |= step(place, waiting);
    }
    return waiting;
  }

  std::vector<std::vector<Step>> plans;
  std::vector<Blocks> blocks;
  std::vector<Blocks> inputs;  // kDirect
  std::vector<std::size_t> next;

 private:
  bool step(std::size_t place, std::vector<PlannedMessage>& waiting) {
    if (next[place] == plans[place].size()) return false;
    const Step& step = plans[place][next[place]];
    std::vector<std::size_t> moved;
    for (std::size_t i = step.first; step.is_marked ? i < plans.size() : i < step.first + step.count; ++i)
      if (!step.is_marked || (i & step.first) != 0) moved.push_back(i);
    Blocks& mine = blocks[place];
    if (step.action == Step::Action::kTakeInput) {
      mine.at(step.first) = inputs[place].at(step.first);
      ++next[place];
      return true;
    }
    if (step.action == Step::Action::kSend || step.action == Step::Action::kSendInput) {
      PlannedMessage message{step.peer, static_cast<int>(place), step.round, {}};
      const Blocks& from = step.action == Step::Action::kSend ? mine : inputs[place];
      for (const std::size_t i : moved) message.blocks.push_back(from.at(i));
      waiting.push_back(std::move(message));
      ++next[place];
      return true;
    }
    const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const PlannedMessage& one) {
      return one.to == static_cast<int>(place) && one.from == step.peer && one.round == step.round;
    });
    if (found == waiting.end()) return false;
    const Blocks arrived = std::move(found->blocks);
    waiting.erase(found);
    EXPECT_EQ(arrived.size(), moved.size());
    for (std::size_t k = 0; k < moved.size(); ++k) take(step.action, mine, moved[k], arrived.at(k));
    ++next[place];
    return true;
  }

  static void take(Step::Action action, Blocks& mine, std::size_t block, const std::string& arrived) {
    std::string& one = mine.at(block);
    switch (action) {
      case Step::Action::kSend:
      case Step::Action::kSendInput:
      case Step::Action::kTakeInput:
      case Step::Action::kFail:
        break;
      case Step::Action::kReceive:
        one = arrived;
        break;
      case Step::Action::kCombineFromLeft:
        one = arrived + one;
        break;
      case Step::Action::kCombineFromRight:
        one += arrived;
        break;
    }
  }
};

std::string name_of(int place) { return std::string(1, static_cast<char>('a' + place)); }

// The names of the members [first, last).
std::string names(int first, int last) {
  std::string all;
  for (int place = first; place < last; ++place) all += name_of(place);
  return all;
}

class Plans : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static int size() { return std::get<0>(GetParam()); }
  static bool waits_first() { return std::get<1>(GetParam()); }
  static PlannedGroup group(Kind kind, int root, Form form = Form::kFewMessages, bool in_order = false) {
    return {{.kind = kind, .form = form, .root = root, .waits_first = waits_first(), .in_order = in_order},
            size()};
  }
  // Each member has a block for each place, of which the member and the place are the name. What is not input is empty.
  static PlannedGroup direct_group(Kind kind, int root, bool in_order) {
    PlannedGroup all = group(kind, root, Form::kDirect, in_order);
    for (int place = 0; place < size(); ++place) {
      Blocks& inputs = all.inputs.emplace_back();
      for (int i = 0; i < size(); ++i) inputs.push_back(name_of(place));
    }
    for (Blocks& blocks : all.blocks) blocks.resize(static_cast<std::size_t>(size()));
    return all;
  }
  static int right(int place, int distance) { return (place + distance + size()) % size(); }

  std::mt19937 random_{20261128};
};

TEST_P(Plans, ABarrierHearsOfAllMembers) {
  PlannedGroup all = group(Kind::kBarrier, 0);
  all.run(random_);
  if (waits_first()) return;
  // A member is over only after each other one has begun: whoever begins last is heard of by all.
  for (int last = 0; last < size(); ++last) {
    std::vector<bool> knows(static_cast<std::size_t>(size()));
    knows[static_cast<std::size_t>(last)] = true;
    for (std::size_t round = 0; round * 2 < all.plans[0].size(); ++round) {
      const std::vector<bool> before = knows;
      for (int place = 0; place < size(); ++place) {
        const Step& receive = all.plans[static_cast<std::size_t>(place)][2 * round + 1];
        if (before[static_cast<std::size_t>(receive.peer)]) knows[static_cast<std::size_t>(place)] = true;
      }
    }
    EXPECT_EQ(std::count(knows.begin(), knows.end(), true), size());
  }
}

TEST_P(Plans, ABroadcastGivesTheRootsBlock) {
  for (int root = 0; root < size(); ++root) {
    PlannedGroup all = group(Kind::kBroadcast, root);
    for (int place = 0; place < size(); ++place)
      all.blocks[static_cast<std::size_t>(place)] = {name_of(place)};
    all.run(random_);
    for (const Blocks& blocks : all.blocks) EXPECT_EQ(blocks, Blocks{name_of(root)});
  }
}

TEST_P(Plans, AReductionCombinesEachMemberOnce) {
  for (int root = 0; root < size(); ++root) {
    for (const Kind kind : {Kind::kReduce, Kind::kReduceInOrder}) {
      PlannedGroup all = group(kind, root);
      for (int place = 0; place < size(); ++place)
        all.blocks[static_cast<std::size_t>(place)] = {name_of(place)};
      all.run(random_);
      std::string result = all.blocks[static_cast<std::size_t>(root)][0];
      if (kind == Kind::kReduce) std::sort(result.begin(), result.end());
      EXPECT_EQ(result, names(0, size()));
    }
  }
}

TEST_P(Plans, AnAllreduceCombinesInTheOrderOfPlaces) {
  PlannedGroup all = group(Kind::kAllreduce, 0);
  for (int place = 0; place < size(); ++place) all.blocks[static_cast<std::size_t>(place)] = {name_of(place)};
  all.run(random_);
  for (const Blocks& blocks : all.blocks) EXPECT_EQ(blocks, Blocks{names(0, size())});
}

TEST_P(Plans, AScanCombinesThePlacesBefore) {
  PlannedGroup inclusive = group(Kind::kScan, 0);
  PlannedGroup exclusive = group(Kind::kExclusiveScan, 0);
  for (int place = 0; place < size(); ++place) {
    inclusive.blocks[static_cast<std::size_t>(place)] = {name_of(place)};
    exclusive.blocks[static_cast<std::size_t>(place)] = {name_of(place)};
  }
  inclusive.run(random_);
  exclusive.run(random_);
  for (int place = 0; place < size(); ++place) {
    EXPECT_EQ(inclusive.blocks[static_cast<std::size_t>(place)][0], names(0, place + 1));
    EXPECT_EQ(exclusive.blocks[static_cast<std::size_t>(place)][0], names(0, std::max(place, 1)));
  }
}

TEST_P(Plans, AReduceScatterCombinesEachBlockOfEachMemberOnce) {
  if ((size() & (size() - 1)) != 0) return;  // for a power of two
  PlannedGroup all = group(Kind::kReduceScatter, 0);
  for (int place = 0; place < size(); ++place)
    all.blocks[static_cast<std::size_t>(place)] = Blocks(static_cast<std::size_t>(size()), name_of(place));
  all.run(random_);
  for (std::size_t place = 0; place < all.blocks.size(); ++place) {
    std::string result = all.blocks[place][place];
    std::sort(result.begin(), result.end());
    EXPECT_EQ(result, names(0, size()));
  }
}

TEST_P(Plans, AnAllgatherGivesAllBlocks) {
  PlannedGroup all = group(Kind::kAllgather, 0);
  for (int place = 0; place < size(); ++place) {
    Blocks& blocks = all.blocks[static_cast<std::size_t>(place)];
    blocks.resize(static_cast<std::size_t>(size()));
    blocks[0] = name_of(place);
  }
  all.run(random_);
  for (int place = 0; place < size(); ++place)
    for (int i = 0; i < size(); ++i)
      EXPECT_EQ(all.blocks[static_cast<std::size_t>(place)][static_cast<std::size_t>(i)],
                name_of(right(place, i)));
}

TEST_P(Plans, AnAlltoallExchangesAllBlocks) {
  for (const Form form : {Form::kFewMessages, Form::kSeparate}) {
    PlannedGroup all = group(Kind::kAlltoall, 0, form);
    for (int place = 0; place < size(); ++place)
      for (int i = 0; i < size(); ++i)
        all.blocks[static_cast<std::size_t>(place)].push_back(name_of(place) + name_of(right(place, i)));
    all.run(random_);
    for (int place = 0; place < size(); ++place)
      for (int i = 0; i < size(); ++i)
        EXPECT_EQ(all.blocks[static_cast<std::size_t>(place)][static_cast<std::size_t>(i)],
                  name_of(right(place, -i)) + name_of(place));
  }
}

TEST_P(Plans, AGatherAndAScatterMoveTheBlocksOfTheRoot) {
  for (int root = 0; root < size(); ++root) {
    PlannedGroup gather = group(Kind::kGather, root);
    PlannedGroup scatter = group(Kind::kScatter, root);
    for (int place = 0; place < size(); ++place) {
      Blocks& gathered = gather.blocks[static_cast<std::size_t>(place)];
      gathered.resize(blocks_below({place, size()}, root));
      gathered[0] = name_of(place);
      scatter.blocks[static_cast<std::size_t>(place)].resize(gathered.size());
    }
    for (int i = 0; i < size(); ++i)
      scatter.blocks[static_cast<std::size_t>(root)].at(static_cast<std::size_t>(i)) =
          name_of(right(root, i));
    gather.run(random_);
    scatter.run(random_);
    for (int i = 0; i < size(); ++i) {
      EXPECT_EQ(gather.blocks[static_cast<std::size_t>(root)].at(static_cast<std::size_t>(i)),
                name_of(right(root, i)));
      EXPECT_EQ(scatter.blocks[static_cast<std::size_t>(i)].at(0), name_of(i));
    }
  }
}

TEST_P(Plans, DirectReductionsCombineAllBlocksInOrderIfAsked) {
  for (const bool in_order : {false, true})
    for (const Kind kind : {Kind::kReduceScatter, Kind::kAllreduce, Kind::kReduce})
      for (int root = 0; root < (kind == Kind::kReduce ? size() : 1); ++root) {
        PlannedGroup all = direct_group(kind, root, in_order);
        all.run(random_);
        for (int place = 0; place < size(); ++place)
          for (int i = 0; i < size(); ++i) {
            const bool has_result =
                kind == Kind::kAllreduce || (kind == Kind::kReduce && place == root) || i == place;
            std::string result = all.blocks[static_cast<std::size_t>(place)][static_cast<std::size_t>(i)];
            if (!in_order) std::sort(result.begin(), result.end());
            EXPECT_EQ(result, has_result ? names(0, size()) : "");
          }
      }
}

TEST_P(Plans, DirectScansCombineThePlacesBefore) {
  PlannedGroup inclusive = direct_group(Kind::kScan, 0, true);
  PlannedGroup exclusive = direct_group(Kind::kExclusiveScan, 0, true);
  inclusive.run(random_);
  exclusive.run(random_);
  for (int place = 0; place < size(); ++place) {
    EXPECT_EQ(inclusive.blocks[static_cast<std::size_t>(place)],
              Blocks(static_cast<std::size_t>(size()), names(0, place + 1)));
    if (place > 0) {
      EXPECT_EQ(exclusive.blocks[static_cast<std::size_t>(place)],
                Blocks(static_cast<std::size_t>(size()), names(0, place)));
    }
  }
}

TEST_P(Plans, DirectBlocksAreMovedToTheirPlaces) {
  PlannedGroup gathered = group(Kind::kAllgather, 0, Form::kDirect);
  PlannedGroup exchanged = direct_group(Kind::kAlltoall, 0, false);
  for (int place = 0; place < size(); ++place) {
    Blocks& blocks = gathered.blocks[static_cast<std::size_t>(place)];
    blocks.resize(static_cast<std::size_t>(size()));
    blocks[static_cast<std::size_t>(place)] = name_of(place);
    for (int i = 0; i < size(); ++i)
      exchanged.inputs[static_cast<std::size_t>(place)][static_cast<std::size_t>(i)] += name_of(i);
  }
  gathered.run(random_);
  exchanged.run(random_);
  for (int place = 0; place < size(); ++place)
    for (int i = 0; i < size(); ++i) {
      EXPECT_EQ(gathered.blocks[static_cast<std::size_t>(place)][static_cast<std::size_t>(i)], name_of(i));
      EXPECT_EQ(exchanged.blocks[static_cast<std::size_t>(place)][static_cast<std::size_t>(i)],
                name_of(i) + name_of(place));
    }
  for (int root = 0; root < size(); ++root) {
    PlannedGroup broadcast = group(Kind::kBroadcast, root, Form::kDirect);
    for (int place = 0; place < size(); ++place)
      broadcast.blocks[static_cast<std::size_t>(place)] = {name_of(place)};
    broadcast.run(random_);
    for (const Blocks& blocks : broadcast.blocks) EXPECT_EQ(blocks, Blocks{name_of(root)});
  }
}

// The numbers of messages are what makes small collectives fast.
TEST_P(Plans, AMemberTakesLogarithmicallyManySteps) {
  if (waits_first()) return;
  std::size_t rounds = 0;
  while ((std::size_t{1} << rounds) < static_cast<std::size_t>(size())) ++rounds;
  for (const Kind kind : {Kind::kBarrier, Kind::kBroadcast, Kind::kReduce, Kind::kScan, Kind::kAllgather,
                          Kind::kGather, Kind::kScatter})
    for (const auto& plan : group(kind, 0).plans) EXPECT_LE(plan.size(), 2 * rounds);
  for (const auto& plan : group(Kind::kAllreduce, 0).plans) EXPECT_LE(plan.size(), 2 * rounds + 2);
}

// Plans for members on several hosts.
class HostPlans : public ::testing::TestWithParam<std::tuple<std::vector<int>, bool>> {
 protected:
  static const std::vector<int>& host_of() { return std::get<0>(GetParam()); }
  static bool waits_first() { return std::get<1>(GetParam()); }
  int size() const { return static_cast<int>(host_of().size()); }

  PlannedGroup group(Kind kind, int root, bool in_order = false) {
    PlannedGroup all({.kind = kind,
                      .form = Form::kLeaders,
                      .root = root,
                      .waits_first = waits_first() && kind != Kind::kBarrier,
                      .in_order = in_order},
                     size(), hosts_.get());
    for (int place = 0; place < size(); ++place)
      all.blocks[static_cast<std::size_t>(place)] = {name_of(place)};
    return all;
  }
  struct Crossed {
    int to_host = 0;
    int from_host = 0;
  };
  // What crosses the link of a host. Without blocks: how many messages without blocks.
  Crossed crossed(const PlannedGroup& all, int host, bool has_blocks) const {
    Crossed count;
    for (int place = 0; place < size(); ++place)
      for (const Step& step : all.plans[static_cast<std::size_t>(place)]) {
        const int from = hosts_->host_of(place);
        const int to = hosts_->host_of(step.peer);
        if (step.action != Step::Action::kSend || from == to || (step.count > 0) != has_blocks) continue;
        const int weight = has_blocks ? static_cast<int>(step.count) : 1;
        if (from == host) count.from_host += weight;
        if (to == host) count.to_host += weight;
      }
    return count;
  }
  // Steps of doubling between leaders, and those of a leader without a partner.
  int most_exchanges() const {
    int rounds = 0;
    while ((1 << rounds) < hosts_->num_hosts()) ++rounds;
    return hosts_->num_hosts() == (1 << rounds) ? rounds : rounds + 1;
  }

  std::shared_ptr<const runtime::HostGroups> hosts_ = runtime::HostGroups::make(host_of());
  std::mt19937 random_{20261128};
};

TEST_P(HostPlans, NoMemberLeavesABarrierBeforeAllHaveBegun) {
  group(Kind::kBarrier, 0).run(random_);
  for (int late = 0; late < size(); ++late) {
    PlannedGroup all = group(Kind::kBarrier, 0);
    static_cast<void>(all.run_without(late, random_));
    for (std::size_t place = 0; place < all.plans.size(); ++place)
      EXPECT_LT(all.next[place], all.plans[place].size());
    for (int host = 0; host < hosts_->num_hosts(); ++host) {
      EXPECT_LE(crossed(all, host, false).to_host, most_exchanges());
      EXPECT_LE(crossed(all, host, false).from_host, most_exchanges());
    }
  }
}

TEST_P(HostPlans, ABroadcastComesToEachHostOnce) {
  for (int root = 0; root < size(); ++root) {
    PlannedGroup all = group(Kind::kBroadcast, root);
    all.run(random_);
    for (const Blocks& blocks : all.blocks) EXPECT_EQ(blocks, Blocks{name_of(root)});
    for (int host = 0; host < hosts_->num_hosts(); ++host)
      EXPECT_EQ(crossed(all, host, true).to_host, host == hosts_->host_of(root) ? 0 : 1);
  }
}

TEST_P(HostPlans, AReductionLeavesEachHostOnce) {
  for (int root = 0; root < size(); ++root) {
    PlannedGroup all = group(Kind::kReduce, root);
    all.run(random_);
    std::string result = all.blocks[static_cast<std::size_t>(root)][0];
    std::sort(result.begin(), result.end());
    EXPECT_EQ(result, names(0, size()));
    for (int host = 0; host < hosts_->num_hosts(); ++host)
      EXPECT_EQ(crossed(all, host, true).from_host, host == hosts_->host_of(root) ? 0 : 1);
  }
}

TEST_P(HostPlans, AReductionInOrderTooIfTheMembersOfAHostFollowOneAnother) {
  for (int root = 0; root < size(); ++root) {
    PlannedGroup all = group(Kind::kReduceInOrder, root, true);
    all.run(random_);
    EXPECT_EQ(all.blocks[static_cast<std::size_t>(root)][0], names(0, size()));
    // The first host has the result, and sends it to the root's.
    for (int host = 0; host < hosts_->num_hosts() && hosts_->are_consecutive(); ++host)
      EXPECT_EQ(crossed(all, host, true).from_host, host > 0 || hosts_->host_of(root) != 0 ? 1 : 0);
  }
}

TEST_P(HostPlans, AnAllreduceCombinesInOrderIfAsked) {
  for (const bool in_order : {false, true}) {
    PlannedGroup all = group(Kind::kAllreduce, 0, in_order);
    all.run(random_);
    for (const Blocks& blocks : all.blocks) EXPECT_EQ(blocks, all.blocks[0]) << "not the same bits at all";
    std::string result = all.blocks[0][0];
    if (!in_order) std::sort(result.begin(), result.end());
    EXPECT_EQ(result, names(0, size()));
    for (int host = 0; host < hosts_->num_hosts() && (!in_order || hosts_->are_consecutive()); ++host) {
      EXPECT_LE(crossed(all, host, true).to_host, most_exchanges());
      EXPECT_LE(crossed(all, host, true).from_host, most_exchanges());
    }
  }
}

TEST_P(HostPlans, AnAllgatherBringsEachBlockToAHostOnce) {
  PlannedGroup all = group(Kind::kAllgather, 0);
  Blocks gathered;
  for (int i = 0; i < size(); ++i) {
    const int place = place_of_block(Form::kLeaders, {0, size()}, hosts_.get(), i);
    gathered.push_back(name_of(place));
    Blocks& blocks = all.blocks[static_cast<std::size_t>(place)];
    blocks.assign(static_cast<std::size_t>(size()), "");
    blocks[static_cast<std::size_t>(i)] = name_of(place);
  }
  all.run(random_);
  for (const Blocks& blocks : all.blocks) EXPECT_EQ(blocks, gathered);
  for (int host = 0; host < hosts_->num_hosts(); ++host)
    EXPECT_EQ(crossed(all, host, true).to_host, size() - hosts_->num_on(host));
}

// One message in each direction, with two hosts.
TEST(HostPlan, AnAllreduceOfTwoHostsCrossesTheLinkOnce) {
  const auto hosts = runtime::HostGroups::make(std::vector<int>{0, 0, 0, 1, 1, 1, 1});
  int crossings = 0;
  for (int place = 0; place < 7; ++place)
    for (const Step& step :
         make_plan({.kind = Kind::kAllreduce, .form = Form::kLeaders}, {place, 7}, hosts.get()))
      if (step.action == Step::Action::kSend && hosts->host_of(place) != hosts->host_of(step.peer))
        ++crossings;
  EXPECT_EQ(crossings, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, HostPlans,
    ::testing::Combine(::testing::Values(std::vector{0, 0, 1, 1}, std::vector{0, 1, 0, 1},
                                         std::vector{5, 5, 5, 2}, std::vector{0, 1, 1, 1, 1, 2, 2},
                                         std::vector{0, 1, 2, 0, 1, 2, 0}, std::vector{0, 1, 1, 0},
                                         std::vector{3, 3, 3, 0, 0, 2, 2, 2, 2, 1, 4},
                                         std::vector{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6, 6, 6},
                                         std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 8, 8, 7, 1, 1, 1, 6, 9}),
                       ::testing::Bool()));

INSTANTIATE_TEST_SUITE_P(Sizes, Plans,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17),
                                            ::testing::Bool()));

}  // namespace
}  // namespace weft::collective
