#include "machine/ucx/setup/introduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "machine/ucx/setup/library.h"
#include "machine/ucx/ucx_machine.h"
#include "memory/memory.h"
#include "tests/conformance/world.h"
#include "tests/support/within_a_minute.h"
#include "tests/unit/machine/ucx/setting.h"

namespace weft::machine::ucx {
namespace {

constexpr AmId kId = 5;

TEST(IntroductionTest, OnlyKnownTransportsWithinAHostArePrivate) {
  EXPECT_TRUE(are_private({"self/memory", "posix/memory", "cma/memory", "cuda_copy/cuda"}));
  EXPECT_FALSE(are_private({"self/memory", "sysv/memory"})) << "the user's group can attach its segments";
  EXPECT_FALSE(are_private({"self/memory", "tcp/lo"}));
  EXPECT_FALSE(are_private({"self/memory", "rc_mlx5/mlx5_0:1"}));
  EXPECT_FALSE(are_private({"self/memory", "selfish/memory"}));
  EXPECT_FALSE(are_private({"self/memory", ""}));
  EXPECT_FALSE(are_private({})) << "UCX that does not say what it has opened";
}

TEST(IntroductionTest, SharedMemoryIsFoundAmongTransports) {
  EXPECT_TRUE(has_shared_memory({"self/memory", "posix/memory"}));
  EXPECT_TRUE(has_shared_memory({"xpmem/memory", "tcp/lo"}));
  EXPECT_FALSE(has_shared_memory({"self/memory", "tcp/posix", "cma/memory"}));
  EXPECT_FALSE(has_shared_memory({}));
}

Introduction introduction(bool is_private) {
  return {.staging = StagingMode::kDevice,
          .is_private = is_private,
          .proposed = JobSecret::draw().value(),
          .queues = {.file = {.file = {}, .nonce = 1}, .host = 2},
          .address = {std::byte{1}, std::byte{2}}};
}

TEST(IntroductionTest, OnePeThatOthersReachIsEnoughForASecret) {
  const Introduction first = introduction(true);
  EXPECT_FALSE(agree({first.pack(), introduction(true).pack()}, 1).value().secret.has_value());
  const Agreement agreement = agree({first.pack(), introduction(false).pack()}, 0).value();
  ASSERT_TRUE(agreement.secret.has_value());
  EXPECT_TRUE(agreement.secret->opens(first.proposed.bytes())) << "not that of PE 0";
  EXPECT_EQ(agreement.addresses, std::vector(2, first.address));
}

TEST(IntroductionTest, WhatIsNoIntroductionIsRefused) {
  const std::vector<std::byte> good = introduction(true).pack();
  EXPECT_TRUE(agree({good}, 0).ok());
  for (std::size_t size = 0; size < good.size() - 1; ++size) {
    EXPECT_EQ(
        agree({good, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}}, 0).status().code(),
        base::StatusCode::kCorrupt)
        << size;
  }
  for (const std::size_t index : {0, 1}) {
    std::vector<std::byte> wrong = good;
    wrong[index] = std::byte{2};
    EXPECT_EQ(agree({good, wrong}, 0).status().code(), base::StatusCode::kCorrupt) << index;
  }
  Introduction staged = introduction(true);
  staged.staging = StagingMode::kHost;
  EXPECT_EQ(agree({good, staged.pack()}, 0).status().code(), base::StatusCode::kInvalidArgument);
}

TEST(IntroductionTest, SeveralHostsLeaveOutTheLoopbackDevice) {
  memory::Memory memory;
  auto machine = UcxMachine::create({.pe = 0, .num_pes = 2, .pes_on_host = 1}, memory).value();
  const std::set<std::string> transports = machine->transports();
  const bool has_tcp =
      std::ranges::any_of(transports, [](const auto& name) { return name.starts_with("tcp/"); });
  EXPECT_TRUE(has_tcp);
  if (transports.size() > 1 && !transports.contains("tcp/lo")) return;
  GTEST_SKIP() << "this host has no network but the loopback device, or an UCX before 1.21: "
               << library_version();
}

// A job of two PEs on one host with the transports that the user asked for, and an outsider who knows the
// address of PE 0 but no secret.
class OneHostTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<UcxMachine> create(int pe) {
    memories_.push_back(std::make_unique<memory::Memory>());
    return UcxMachine::create({.pe = pe, .num_pes = 2, .pes_on_host = 2}, *memories_.back()).value();
  }
  static void count(void* number, AmArrival&) { ++*static_cast<int*>(number); }

  std::vector<std::unique_ptr<memory::Memory>> memories_;
};

TEST_P(OneHostTest, AListenerIsGuardedByASecret) {
  const Setting tls("UCX_TLS", GetParam());
  std::vector<std::unique_ptr<UcxMachine>> machines;
  std::vector<std::vector<std::byte>> introductions;
  for (int pe = 0; pe < 2; ++pe) {
    machines.push_back(create(pe));
    introductions.push_back(machines.back()->introduce(JobSecret::draw().value()).value().pack());
  }
  machines.push_back(create(1));  // the outsider
  int arrived = 0;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    Agreement agreement = agree(introductions, i == 0 ? 0 : 1).value();
    if (i == 2) agreement.secret.reset();
    agreement.queues.clear();  // the messages take the listener
    ASSERT_TRUE(machines[i]->connect(std::move(agreement)).ok());
    ASSERT_TRUE(machines[i]->set_am_handler(kId, &OneHostTest::count, &arrived).ok());
  }
  EXPECT_TRUE(machines[0]->has_secret());
  const auto until = [&](auto condition) {
    return testing::within_a_minute(condition, [&] {
      for (auto& machine : machines) machine->progress();
    });
  };
  const std::vector<std::byte> header(24, std::byte{7});
  conformance::CheckedOperation theirs;
  theirs.start(machines[2]->am_send(0, kId, header, {}, &theirs));
  EXPECT_TRUE(until([&] { return machines[0]->num_refused() == 1 || arrived > 0; }));
  EXPECT_EQ(arrived, 0) << "a message without the secret reached a handler";
  conformance::CheckedOperation ours;
  ours.start(machines[1]->am_send(0, kId, header, {}, &ours));
  EXPECT_TRUE(until([&] { return arrived == 1 && ours.done() && theirs.done(); }));
  for (auto& machine : machines) machine->close();
}

// Whatever the user asks for: another user of the same group can attach System V segments.
TEST(OneHostSecretTest, NoSettingOpensSystemVSharedMemory) {
  for (const char* const list :
       {"self,sm", "self,shm", "mm,self", "all", "self,sm,tcp", "^tcp", "self,sysv", "\\sysv,self"}) {
    const Setting tls("UCX_TLS", list);
    memory::Memory memory;
    auto machine = UcxMachine::create({.pe = 0, .num_pes = 2, .pes_on_host = 2}, memory);
    ASSERT_TRUE(machine.ok()) << list << ": " << machine.status().to_string();
    EXPECT_FALSE((*machine)->transports().contains("sysv/memory")) << list;
    EXPECT_TRUE((*machine)->transports().contains("posix/memory")) << list;
  }
}

INSTANTIATE_TEST_SUITE_P(Tls, OneHostTest, ::testing::Values("tcp", "all"));

TEST(OneHostSecretTest, SharedMemoryNeedsNone) {
  memory::Memory memory;
  auto machine = UcxMachine::create({.pe = 0, .num_pes = 1, .pes_on_host = 1}, memory).value();
  const Introduction own = machine->introduce(JobSecret::draw().value()).value();
  EXPECT_TRUE(own.is_private) << "each message of a job of one host would carry a secret";
  ASSERT_TRUE(machine->connect(agree({own.pack()}, 0).value()).ok());
  EXPECT_FALSE(machine->has_secret());
}

}  // namespace
}  // namespace weft::machine::ucx
