#include "machine/ucx/setup/job_secret.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "machine/ucx/ucx_machine.h"
#include "memory/memory.h"
#include "tests/conformance/world.h"
#include "tests/support/within_a_minute.h"

namespace weft::machine::ucx {
namespace {

constexpr AmId kSecretId = 5;

TEST(JobSecretTest, EveryBitCounts) {
  const JobSecret secret = JobSecret::draw().value();
  std::vector<std::byte> message(secret.bytes().begin(), secret.bytes().end());
  EXPECT_TRUE(secret.opens(message));
  message.resize(message.size() + 3);
  EXPECT_TRUE(secret.opens(message));
  for (std::size_t bit = 0; bit < 8 * JobSecret::kBytes; ++bit) {
    std::vector<std::byte> other = message;
    other[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(secret.opens(other)) << "bit " << bit;
  }
  EXPECT_FALSE(secret.opens(std::span(message).first(JobSecret::kBytes - 1)));
  EXPECT_FALSE(secret.opens({}));
}

TEST(JobSecretTest, TwoDrawsDiffer) {
  EXPECT_FALSE(JobSecret::draw().value().opens(JobSecret::draw().value().bytes()));
}

TEST(JobSecretTest, AnotherLengthIsRefused) {
  const JobSecret secret = JobSecret::draw().value();
  EXPECT_TRUE(JobSecret::from_bytes(secret.bytes()).value().opens(secret.bytes()));
  EXPECT_EQ(JobSecret::from_bytes(secret.bytes().first(15)).status().code(), base::StatusCode::kCorrupt);
  EXPECT_EQ(JobSecret::from_bytes({}).status().code(), base::StatusCode::kCorrupt);
}

// Three PEs that each believe to be alone on a host; the last has not the job's secret.
class OutsiderTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  OutsiderTest() {
    std::vector<std::vector<std::byte>> introductions;
    for (int pe = 0; pe < 3; ++pe) {
      memories_.push_back(std::make_unique<memory::Memory>());
      auto made = UcxMachine::create({.pe = pe, .num_pes = 3, .pes_on_host = 1}, *memories_.back());
      EXPECT_TRUE(made.ok()) << made.status().to_string();
      machines_.push_back(std::move(made).value());
      introductions.push_back(machines_.back()->introduce(JobSecret::draw().value()).value().pack());
    }
    for (int pe = 0; pe < 3; ++pe) {
      Agreement agreement = agree(introductions, pe).value();
      EXPECT_TRUE(agreement.secret.has_value());
      if (pe == 2) agreement.secret = JobSecret::draw().value();
      EXPECT_TRUE(machine(pe).connect(std::move(agreement)).ok());
      EXPECT_TRUE(machine(pe).set_am_handler(kSecretId, &OutsiderTest::on_message, &arrived_).ok());
    }
  }
  ~OutsiderTest() override {
    for (auto& machine : machines_) machine->close();
  }

  static void on_message(void* context, AmArrival& arrival) {
    std::vector<std::byte> header(arrival.header.begin(), arrival.header.end());
    static_cast<std::vector<std::vector<std::byte>>*>(context)->push_back(header);
  }

  UcxMachine& machine(int pe) { return *machines_[static_cast<std::size_t>(pe)]; }
  void send(int pe, std::span<const std::byte> header, const std::vector<std::byte>& payload) {
    auto& sending = operations_.emplace_back();
    sending.start(machine(pe).am_send(0, kSecretId, header,
                                      memory::ConstBuffer(payload.data(), payload.size()), &sending));
  }
  template <class Condition>
  bool until(Condition condition) {
    return testing::within_a_minute(condition, [this] {
      for (auto& machine : machines_) machine->progress();
    });
  }

  std::vector<std::unique_ptr<memory::Memory>> memories_;
  std::vector<std::vector<std::byte>> arrived_;
  std::deque<conformance::CheckedOperation> operations_;
  std::vector<std::unique_ptr<UcxMachine>> machines_;
};

TEST_P(OutsiderTest, ItsMessagesReachNoHandler) {
  const std::vector<std::byte> header(24, std::byte{7});
  const std::vector<std::byte> payload(GetParam(), std::byte{1});
  send(2, header, payload);
  send(2, {}, payload);
  ASSERT_TRUE(until([&] { return machine(0).num_refused() == 2; }));
  send(1, header, payload);
  send(1, {}, payload);
  ASSERT_TRUE(until([&] { return arrived_.size() == 2; }));
  EXPECT_EQ(arrived_[0].size() + arrived_[1].size(), header.size());
  EXPECT_EQ(machine(0).num_refused(), 2u);
}

TEST_P(OutsiderTest, ItsSmallPutsReachNoMemory) {
  std::vector<std::byte> target(GetParam() + 8, std::byte{1});
  const RemoteMemory remote = machine(0).register_memory({target.data(), target.size(), {}, nullptr}).value();
  const std::vector<std::byte> bytes(8, std::byte{2});
  // The first message makes the connection: small puts are messages from then on.
  send(2, {}, bytes);
  send(1, {}, bytes);
  ASSERT_TRUE(until([&] { return machine(0).num_refused() == 1 && arrived_.size() == 1; }));
  const auto put = [&](int pe) -> conformance::CheckedOperation& {
    auto& putting = operations_.emplace_back();
    putting.start(
        machine(pe).put_and_flush(0, memory::ConstBuffer(bytes.data(), bytes.size()), remote, 0, &putting));
    return putting;
  };
  const conformance::CheckedOperation& outside = put(2);
  ASSERT_TRUE(until([&] { return machine(0).num_refused() == 2; }));
  EXPECT_FALSE(outside.done());
  EXPECT_TRUE(std::ranges::all_of(target, [](std::byte value) { return value == std::byte{1}; }));
  const conformance::CheckedOperation& inside = put(1);
  ASSERT_TRUE(until([&] { return inside.done(); }));
  EXPECT_TRUE(inside.status().ok()) << inside.status().to_string();
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), target.begin()));
}

INSTANTIATE_TEST_SUITE_P(EagerAndRendezvous, OutsiderTest,
                         ::testing::Values(std::size_t{0}, std::size_t{8}, std::size_t{1} << 22));

}  // namespace
}  // namespace weft::machine::ucx
