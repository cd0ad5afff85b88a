// What tests of a channel's paths past the machine share: a channel between two chares of one process, on a
// PE or on two, whose operations the test starts from outside and watches.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/channel/channels.h"
#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"

namespace weft::channel {

inline constexpr memory::Place kDevice{memory::Kind::kEmulated, 0};

struct Node : Chare<Node> {
  Node() { all.at(static_cast<std::size_t>(index())) = this; }
  ~Node() override { all.at(static_cast<std::size_t>(index())) = nullptr; }
  Channel to_the_other() { return Channel(*this, proxy()[1 - index()]); }
  static inline std::array<Node*, 2> all{};
};

struct Outcome {
  bool done = false;
  Status status;
  std::size_t size_bytes = 0;
};
using OutcomePtr = std::shared_ptr<Outcome>;

// Node n lives on PE n, or both on PE 0.
struct ChannelPair {
  explicit ChannelPair(int num_pes, std::string_view machine,
                       machine::StagingMode staging = machine::StagingMode::kDevice)
      : job(num_pes, machine, {}, staging), num_pes_(num_pes) {
    Array<Node>::create(job.runtime(0), Shape(2).with_map(Map::kRoundRobin));
    turn([] { return Node::all[0] != nullptr && Node::all[1] != nullptr; });
  }

  void connect(std::uint32_t first_counter = 0) {
    for (int pe = 0; pe < num_pes_; ++pe) {
      job.runtime(pe).model<Channels>().set_first_counter(first_counter);
    }
    for (std::size_t i = 0; i < 2; ++i) channels[i] = Node::all[i]->to_the_other();
    settle();  // the ends know each other
  }
  void settle() {
    for (int i = 0; i < 100; ++i) step();
  }
  void step() {
    for (int pe = 0; pe < num_pes_; ++pe) job.runtime(pe).step();
  }
  template <class Done>
  void turn(Done done) {
    ASSERT_EQ(job.run_until(done), "");
  }
  void finish(const std::vector<OutcomePtr>& outcomes) {
    turn([&] { return std::ranges::all_of(outcomes, [](const auto& one) { return one->done; }); });
  }

  static OutcomePtr watch(Operation operation) {
    auto outcome = std::make_shared<Outcome>();
    std::move(operation).then(
        [outcome](const Status& status, std::size_t size_bytes) { *outcome = {true, status, size_bytes}; });
    return outcome;
  }
  OutcomePtr send(std::size_t node, const memory::ConstBuffer& buffer) {
    return watch(channels[node].send(buffer));
  }
  OutcomePtr receive(std::size_t node, const memory::Buffer& buffer) {
    return watch(channels[node].recv(buffer));
  }

  testing::InProcessJob job;
  std::array<Channel, 2> channels;

 private:
  int num_pes_;
};

// The parameter is the machine.
struct ChannelPairTest : ChannelPair, ::testing::TestWithParam<std::string> {
  explicit ChannelPairTest(int num_pes) : ChannelPair(num_pes, GetParam()) {}
};

}  // namespace weft::channel
