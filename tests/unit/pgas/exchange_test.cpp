// What ranks send one another in collectives, when it cannot be: each claim ends the job with a sentence, or is an error.
#include "models/pgas/team/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::PartHeader;
using pgas::World;

runtime::MessagePtr part_message(World& world, const PartHeader& header,
                                 const std::vector<std::byte>& bytes = {}) {
  runtime::MessagePtr message =
      runtime::Message::create(world.runtime(), first_team_handler(world), sizeof header + bytes.size());
  Pup p = Pup::packer(message->payload(), message->payload_bytes());
  p | header;
  for (const std::byte byte : bytes) p | byte;
  return message;
}

// Rank 1 sends that to rank 0 before a broadcast of rank 1 and a sum, which are collectives 0 and 1.
std::string failure_of_claim(const std::function<void(World&)>& claim) {
  TeamJob job(2);
  return job.run_on_all([&](World& world) -> Task<> {
    if (world.rank() == 1) claim(world);
    const int one = co_await world.broadcast(world.rank(), 1);
    EXPECT_EQ(one, 1);
    const int sum = co_await world.allreduce(1, Reducer::kSum);
    EXPECT_EQ(sum, 2);
    co_await world.runtime().quiescence();
    co_await world.barrier();
  });
}

TEST(Exchange, RefusesASecondPart) {
  const std::string failure = failure_of_claim([](World& world) {
    for (int i = 0; i < 2; ++i) world.runtime().send(0, part_message(world, {{}, 77, {}, 3, 0}));
  });
  EXPECT_NE(failure.find("rank 1 sent a part of a collective a second time"), std::string::npos) << failure;
}

TEST(Exchange, RefusesAStepThatDoesNotExist) {
  const std::string failure = failure_of_claim(
      [](World& world) { world.runtime().send(0, part_message(world, {{}, 77, {}, 1U << 20, 0})); });
  EXPECT_NE(failure.find("rank 1 sent a part of a collective in a step that does not exist"),
            std::string::npos)
      << failure;
}

TEST(Exchange, RefusesAPartOfACollectiveThatIsOver) {
  TeamJob job(2);
  const std::string failure = job.run_on_all([](World& world) -> Task<> {
    static_cast<void>(co_await world.broadcast(std::string("text"), 0));
    co_await world.barrier();
    PartHeader header;
    header.type = pgas::CollectiveType::of(pgas::CollectiveKind::kBroadcast, 0, Reducer::kSum,
                                           pgas::rpc_detail::type_number<std::string>());
    if (world.rank() == 1) world.runtime().send(0, part_message(world, header));
    co_await world.runtime().quiescence();
    co_await world.barrier();
  });
  EXPECT_NE(failure.find("rank 1 sent a part of a collective that is over"), std::string::npos) << failure;
}

TEST(Exchange, RefusesAKindThatDoesNotExist) {
  const std::string failure = failure_of_claim([](World& world) {
    PartHeader header;
    header.type.kind_and_way = 12;
    world.runtime().send(0, part_message(world, header));
  });
  EXPECT_NE(failure.find("rank 1 calls an unknown collective and this rank broadcast"), std::string::npos)
      << failure;
}

// Rank 1 has no part in the number 5 yet; that a peer sends it ahead is no error.
TEST(Exchange, KeepsAPartThatComesAhead) {
  EXPECT_EQ(
      failure_of_claim([](World& world) { world.runtime().send(0, part_message(world, {{}, 5, {}, 0, 0})); }),
      "");
}

TEST(Exchange, RefusesASenderThatIsNoMember) {
  TeamJob job(3);
  const std::string failure = job.run_on_all([](World& world) -> Task<> {
    const pgas::Team pair = co_await world.split(world.rank() < 2 ? 0 : pgas::kNoTeam, 0);
    std::uint32_t number = 0;  // named: g++ 12 takes both branches of a condition in an await
    if (pair) number = pair.id().number;
    const std::vector<std::uint32_t> numbers = co_await world.allgather(number);
    if (world.rank() == 2) world.runtime().send(0, part_message(world, {{0, numbers[0]}, 0, {}, 0, 0}));
    co_await world.runtime().quiescence();
    co_await world.barrier();
  });
  EXPECT_NE(failure.find("a message from PE 2 names a team of 2 PEs, of which it is no member"),
            std::string::npos)
      << failure;
}

TEST(Exchange, AnErrorThatDoesNotUnpackEndsTheJob) {
  TeamJob job(2);
  const std::string failure = job.run_on_all([](World& world) -> Task<> {
    if (world.rank() == 0) {
      static_cast<void>(co_await world.broadcast(std::string(), 1));
    } else {
      PartHeader header;
      header.type = pgas::CollectiveType::of(pgas::CollectiveKind::kBroadcast, 1, Reducer::kSum,
                                             pgas::rpc_detail::type_number<std::string>());
      header.failed = 1;
      world.runtime().send(0, part_message(world, header, std::vector<std::byte>(20, std::byte{0xff})));
    }
    co_await world.runtime().quiescence();
    co_await world.barrier();
  });
  EXPECT_NE(failure.find("PE 0"), std::string::npos) << failure;
}

// Random bytes for each handler: the job fails with a sentence, or does not notice. WEFT_TEST_SEED sets the seed.
TEST(Exchange, RandomMessagesDoNoHarm) {
  const char* const given = std::getenv("WEFT_TEST_SEED");
  const auto seed = given == nullptr ? std::random_device()() : static_cast<unsigned>(std::atoi(given));
  std::printf("seed: WEFT_TEST_SEED=%u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    const unsigned kind = random() % (pgas::Teams::kNumHandlers + 1);
    const bool is_for_engine = kind == pgas::Teams::kNumHandlers;
    std::vector<std::byte> bytes(random() % 80);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    // No function that exists: it would run on any arguments that unpack.
    if (kind == 1 && bytes.size() > 19) bytes[19] = std::byte{0x7f};
    if (is_for_engine && bytes.size() >= sizeof(collective::StepHeader)) {
      const std::uint64_t group = collective::group_number(collective::Owner::kTeam, 0);
      std::memcpy(bytes.data() + offsetof(collective::StepHeader, group), &group, sizeof group);
      bytes[offsetof(collective::StepHeader, from)] = std::byte{1};
    }
    failure_of_claim([&](World& world) {
      auto handler = static_cast<runtime::HandlerId>(first_team_handler(world) + kind);
      if (is_for_engine) handler = world.runtime().models().front().range.first_handler;
      runtime::MessagePtr message = runtime::Message::create(world.runtime(), handler, bytes.size());
      std::ranges::copy(bytes, message->payload());
      if (is_for_engine) {
        message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
        world.runtime().count_sent();  // as the engine does, for quiescence
      }
      world.runtime().send(0, std::move(message));
    });
  }
}

TEST(CollectiveType, RanksMustAgreeOnAllOfTheRoot) {
  const auto with_root = [](int root) {
    return pgas::CollectiveType::of(pgas::CollectiveKind::kBroadcast, root, Reducer::kSum, 7);
  };
  EXPECT_EQ(with_root(300), with_root(300));
  EXPECT_NE(with_root(300), with_root(44));  // the same last bits
}

}  // namespace
}  // namespace weft::testing
