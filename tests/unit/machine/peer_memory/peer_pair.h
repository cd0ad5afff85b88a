// Two ends of a stream in each direction, on one PE or on two of one process, for tests of peer memory. PEs
// of one process map one another's emulated memory as processes do; tests/multiproc has real processes.
//
// The pair does what a model does: small host memory goes with its tag, and a send that fails ends its receive with
// an empty message.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/factory/factory.h"
#include "machine/peer_memory/peer_memory.h"
#include "tests/support/device_memory.h"
#include "tests/support/within_a_minute.h"

namespace weft::machine {

inline constexpr memory::Place kDevice{memory::Kind::kEmulated, 0};

// A started operation. A second completion fails the test.
struct Outcome : base::Completion {
  Outcome()
      : base::Completion([](base::Completion* self, base::Status status_in, std::size_t size_in) {
          static_cast<Outcome*>(self)->end(std::move(status_in), size_in);
        }) {}
  void started(base::Status status_in, std::size_t size_in) {
    if (!status_in.is_pending()) end(std::move(status_in), size_in);
  }
  void end(base::Status status_in, std::size_t size_in) {
    EXPECT_FALSE(std::exchange(done, true)) << "completed twice";
    status = std::move(status_in);
    size_bytes = size_in;
    if (then) then();
  }
  bool done = false;
  base::Status status;
  std::size_t size_bytes = 0;
  std::function<void()> then;
};
using OutcomePtr = std::shared_ptr<Outcome>;

// Node n lives on PE n, or both on PE 0.
class PeerPair {
 public:
  using TestMemory = testing::TestMemory;

  PeerPair(int num_pes, std::string_view machine, StagingMode staging = StagingMode::kDevice) {
    std::vector<memory::Memory*> memories;
    for (int pe = 0; pe < num_pes; ++pe) {
      memories_.push_back(std::make_unique<memory::Memory>());
      memories.push_back(memories_.back().get());
    }
    machines_ = make_in_process(machine, memories, staging).value();
  }
  ~PeerPair() { close(); }
  PeerPair(const PeerPair&) = delete;
  PeerPair& operator=(const PeerPair&) = delete;

  // The ends learn of each other.
  void connect(std::uint32_t first_number = 0) {
    for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) {
      incoming[node].name = Tag{3} << 60 | Tag{node + 1} << 32;
      incoming[node].peer = pe_of(1 - node);
      incoming[node].next = first_number;
    }
    for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) {
      outgoing[node].name = incoming[1 - node].name;
      outgoing[node].peer = pe_of(1 - node);
      outgoing[node].next = first_number;
      if (machines_.size() == 1) outgoing[node].on_this_pe = &incoming[1 - node];
    }
  }
  // The same, and each end's mailbox is known to its peer.
  void start(std::uint32_t first_number = 0) {
    connect(first_number);
    for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) exchange(node, 8);
    settle();
  }

  OutcomePtr send(std::size_t node, const memory::ConstBuffer& buffer) {
    auto outcome = std::make_shared<Outcome>();
    all_.push_back(outcome);
    OutgoingStream& stream = outgoing[node];
    const StreamMessage message{stream.next, stream.name | stream.next};
    ++stream.next;
    outcome->then = [this, receiver = pe_of(1 - node), message, sent = outcome.get()] {
      const bool must_tell = sent->status.failed() && sent->status.code() != base::StatusCode::kPeerFailed;
      if (must_tell && !is_closed_) end_receive(receiver, message.tag);
    };
    Machine& from = machine(pe_of(node));
    outcome->started(goes_with_tag(buffer.place, buffer.size_bytes)
                         ? from.tag_send(stream.peer, message.tag, buffer, outcome.get())
                         : from.peer_memory().send(stream, message, buffer, outcome.get()),
                     buffer.size_bytes);
    return outcome;
  }
  OutcomePtr receive(std::size_t node, const memory::Buffer& buffer) {
    auto outcome = std::make_shared<Outcome>();
    all_.push_back(outcome);
    IncomingStream& stream = incoming[node];
    const StreamMessage message{stream.next, stream.name | stream.next};
    ++stream.next;
    Machine& at = machine(pe_of(node));
    outcome->started(goes_with_tag(buffer.place, buffer.size_bytes) && stream.held_sends == 0
                         ? at.tag_receive(message.tag, kFullTagMask, buffer, outcome.get())
                         : at.peer_memory().receive(stream, message, buffer, outcome.get()),
                     buffer.size_bytes);
    return outcome;
  }

  void step() {
    for (std::size_t pe = 0; pe < machines_.size(); ++pe) {
      if (!is_pe_closed_[pe]) machines_[pe]->progress();
    }
  }
  void settle() {
    for (int i = 0; i < 200; ++i) step();
  }
  void finish(const std::vector<OutcomePtr>& outcomes) {
    const auto are_done = [&] {
      return std::ranges::all_of(outcomes, [](const auto& one) { return one->done; });
    };
    ASSERT_TRUE(testing::within_a_minute(are_done, [this] { step(); })) << "an operation hangs";
  }
  // Memory of the node's PE that has received before, which is posted; filled as if it had not.
  TestMemory used(std::size_t node, std::size_t size_bytes, std::uint8_t first = 0) {
    TestMemory from(memory(1 - node), kDevice, size_bytes, first);
    TestMemory to(memory(node), kDevice, size_bytes, first);
    const OutcomePtr received = receive(node, to.buffer());
    finish({received, send(1 - node, from.buffer())});
    return to;
  }
  // Memory that no other PE can map.
  TestMemory refusing(std::size_t node, std::size_t size_bytes, std::uint8_t first = 0,
                      memory::Place place = kDevice) {
    auto& kind = testing::emulated(memory(node));
    memory::EmulatedFaults faults;
    faults.refuse_exports = true;
    kind.set_faults(faults);
    TestMemory made(memory(node), place, size_bytes, first);
    kind.set_faults({});
    return made;
  }
  // From `node` to the other, the receive first.
  void exchange(std::size_t node, std::size_t size_bytes) {
    TestMemory from(memory(node), kDevice, size_bytes, 3);
    TestMemory to = used(1 - node, size_bytes);
    const OutcomePtr received = receive(1 - node, to.buffer());
    finish({received, send(node, from.buffer())});
    EXPECT_EQ(to.now(), from.filled());
  }

  // What a node sends, or receives, in a mix of messages: they use parts of a few allocations.
  struct Side {
    std::vector<TestMemory> allocations;
    std::vector<memory::StreamHandle> streams;
    std::vector<memory::Buffer> buffers;  // of the messages that were started
    std::vector<OutcomePtr> outcomes;

    bool is_over(std::size_t num_messages) const {
      return outcomes.size() == num_messages &&
             std::ranges::all_of(outcomes, [](const OutcomePtr& outcome) { return outcome->done; });
    }
  };
  // Each message has landed at node 1 as it was at node 0.
  void expect_equal(const std::array<Side, 2>& sides) {
    for (std::size_t i = 0; i < sides[1].buffers.size(); ++i) {
      const base::Status& status = sides[1].outcomes[i]->status;
      ASSERT_TRUE(status.ok()) << i << ": " << status.to_string();
      ASSERT_EQ(testing::contents(memory(1), sides[1].buffers[i]),
                testing::contents(memory(0), sides[0].buffers[i]))
          << i;
    }
  }
  void destroy_streams(std::size_t node, const std::vector<memory::StreamHandle>& streams) {
    for (const memory::StreamHandle stream : streams) {
      EXPECT_TRUE(testing::emulated(memory(node)).destroy_stream(stream).ok());
    }
  }

  std::uint64_t count(std::size_t node, TransferPath path, memory::Kind kind = kDevice.kind) {
    std::uint64_t messages = 0;
    for (const auto& use : machine(pe_of(node)).transport_use()) {
      if (use.path == path && use.kind == kind && use.type != TransferType::kReceive)
        messages += use.messages;
    }
    return messages;
  }
  std::uint64_t copies(std::size_t node) { return count(node, TransferPath::kPeerMapped); }

  int pe_of(std::size_t node) const { return static_cast<int>(node % machines_.size()); }
  Machine& machine(int pe) { return *machines_.at(static_cast<std::size_t>(pe)); }
  PeerMemory& peer_memory(std::size_t node) { return machine(pe_of(node)).peer_memory(); }
  memory::Memory& memory(std::size_t node) { return *memories_.at(node % memories_.size()); }
  void close() {
    for (int pe = 0; pe < static_cast<int>(machines_.size()); ++pe) close_pe(pe);
  }
  void close_pe(int pe) {
    is_closed_ = true;
    machine(pe).close();
    is_pe_closed_.at(static_cast<std::size_t>(pe)) = true;
  }

  std::array<IncomingStream, 2> incoming;
  std::array<OutgoingStream, 2> outgoing;

 private:
  static bool goes_with_tag(memory::Place place, std::size_t size_bytes) {
    return place.is_host() && size_bytes < SharedCopy::kLeastBytes;
  }
  void end_receive(int pe, Tag tag) {
    auto outcome = std::make_shared<Outcome>();
    all_.push_back(outcome);
    outcome->started(machine(pe).tag_send(pe, tag, {}, outcome.get()), 0);
  }

  std::vector<std::unique_ptr<memory::Memory>> memories_;
  std::vector<OutcomePtr> all_;  // machines point at them until they close
  std::vector<std::unique_ptr<Machine>> machines_;
  bool is_closed_ = false;  // one of them: its peer cannot be told of failed sends
  std::array<bool, 2> is_pe_closed_{};
};

// Nodes on a PE each; the parameter is the machine.
struct PeerMemoryTest : PeerPair, ::testing::TestWithParam<std::string> {
  PeerMemoryTest() : PeerPair(2, GetParam()) {}
};

}  // namespace weft::machine
