#include "weft/runtime/observer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "machine/machine.h"
#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

struct Recorder final : Observer {
  void message_sent(const MessageEvent& event) override { sent.push_back(event); }
  void message_delivered(const MessageEvent& event) override { delivered.push_back(event); }
  void entry_began(const EntryEvent& event) override {
    EXPECT_TRUE(running.insert(event.run).second) << "a run that is not over began again";
    entries.emplace_back(std::string(event.method), true);
  }
  void entry_ended(const EntryEvent& event) override {
    EXPECT_EQ(running.erase(event.run), 1u) << "a run ended that had not begun";
    entries.emplace_back(std::string(event.method), false);
  }
  void transfer_began(const TransferEvent& event) override {
    EXPECT_TRUE(moving.emplace(event.number, event).second) << "two transfers have one number";
  }
  void transfer_ended(const TransferEvent& event, bool succeeded) override {
    const auto found = moving.find(event.number);
    ASSERT_NE(found, moving.end()) << "a transfer ended that had not begun, or twice";
    EXPECT_EQ(found->second.size_bytes, event.size_bytes);
    moving.erase(found);
    if (!succeeded) return void(++failed_transfers);
    auto& sum = moved[{std::string(event.type), std::string(event.path), event.kind}];
    ++sum.first;
    sum.second += event.size_bytes;
  }
  void idle_began() override {
    EXPECT_FALSE(is_idle);
    is_idle = true;
    ++idles;
  }
  void idle_ended() override {
    EXPECT_TRUE(is_idle);
    is_idle = false;
  }

  std::vector<MessageEvent> sent;
  std::vector<MessageEvent> delivered;
  std::vector<std::pair<std::string, bool>> entries;  // method, whether it began
  std::set<const void*> running;
  using Way = std::tuple<std::string, std::string, Kind>;        // type, path, kind
  std::map<Way, std::pair<std::uint64_t, std::uint64_t>> moved;  // transfers and bytes
  std::map<std::uint64_t, TransferEvent> moving;
  int failed_transfers = 0;
  bool is_idle = false;
  int idles = 0;
};

struct Node : Chare<Node> {
  double sum(std::vector<double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }
  Task<int> wait(Future<> gate) {
    co_await gate;
    co_return index()[0];
  }
  void quick() {}
  void open(Future<> gate) { gate.set(); }
};

class ObserverTest : public ::testing::TestWithParam<const char*> {
 protected:
  void observe(testing::InProcessJob& job, std::vector<int> pes) {
    recorders.resize(static_cast<std::size_t>(job.num_pes()));
    for (const int pe : pes) job.runtime(pe).set_observer(&recorders[static_cast<std::size_t>(pe)]);
  }
  static void stop(testing::InProcessJob& job) {
    for (int pe = 0; pe < job.num_pes(); ++pe) job.runtime(pe).set_observer(nullptr);
  }
  // Calls, broadcasts and values of all sizes; ends when no message is in flight.
  static Task<> exercise(Runtime& runtime) {
    auto nodes = Group<Node>::create(runtime);
    for (const std::size_t size : {1u, 100u, 10'000u, 200'000u}) {
      for (int to = 0; to < runtime.num_pes(); ++to) {
        const double sum = co_await nodes[to].call<&Node::sum>(std::vector<double>(size, 1.0));
        EXPECT_EQ(sum, static_cast<double>(size));
      }
    }
    nodes.send<&Node::quick>();
    co_await runtime.quiescence();
  }

  std::vector<Recorder> recorders;
};

TEST_P(ObserverTest, EverySendIsMatchedByOneDelivery) {
  testing::InProcessJob job(4, GetParam());
  observe(job, {0, 1, 2, 3});
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> { co_await exercise(runtime); }), "");
  stop(job);
  std::map<std::uint64_t, MessageEvent> sends;
  for (int pe = 0; pe < 4; ++pe) {
    for (const MessageEvent& event : recorders[static_cast<std::size_t>(pe)].sent) {
      if (event.is_control) continue;
      EXPECT_NE(event.id, 0u);
      EXPECT_TRUE(sends.emplace(event.id, event).second) << "sent twice, or two messages have one number";
    }
  }
  EXPECT_GT(sends.size(), 20u);
  for (int pe = 0; pe < 4; ++pe) {
    for (const MessageEvent& event : recorders[static_cast<std::size_t>(pe)].delivered) {
      if (event.is_control) continue;
      const auto found = sends.find(event.id);
      ASSERT_NE(found, sends.end()) << "delivered, and not sent or delivered before";
      EXPECT_EQ(found->second.pe, pe);
      EXPECT_EQ(found->second.handler, event.handler);
      EXPECT_EQ(found->second.payload_bytes, event.payload_bytes);
      sends.erase(found);
    }
  }
  EXPECT_TRUE(sends.empty()) << sends.size() << " messages were sent and not delivered";
}

TEST_P(ObserverTest, PesWithoutAnObserverUnderstandTheOthers) {
  for (const std::vector<int>& listening : {std::vector{0}, std::vector{1, 3}}) {
    testing::InProcessJob job(4, GetParam());
    recorders.clear();
    observe(job, listening);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> { co_await exercise(runtime); }), "");
    stop(job);
    for (int pe = 0; pe < 4; ++pe) {
      const bool listens = std::ranges::find(listening, pe) != listening.end();
      for (const MessageEvent& event : recorders[static_cast<std::size_t>(pe)].delivered) {
        EXPECT_TRUE(listens);
        const std::uint64_t maker = event.id >> 40;
        if (event.id == 0) continue;
        EXPECT_NE(std::ranges::find(listening, static_cast<int>(maker)), listening.end());
      }
    }
  }
}

TEST_P(ObserverTest, AMessageGrowsOnlyWhileThereIsAnObserver) {
  testing::InProcessJob job(1, GetParam());
  Runtime& runtime = job.runtime(0);
  EXPECT_EQ(Message::pack(runtime, 0, std::uint64_t{5})->wire_bytes(), sizeof(Envelope) + 8);
  observe(job, {0});
  {
    const MessagePtr traced = Message::pack(runtime, 0, std::uint64_t{5});
    EXPECT_EQ(traced->wire_bytes(), sizeof(Envelope) + 8 + 8);
    EXPECT_EQ(traced->payload_bytes(), 8u);
    EXPECT_NE(traced->trace_id(), 0u);
  }
  stop(job);
  EXPECT_EQ(Message::pack(runtime, 0, std::uint64_t{5})->wire_bytes(), sizeof(Envelope) + 8);
}

TEST_P(ObserverTest, ANumberThatIsAnnouncedAndMissingIsRefused) {
  testing::InProcessJob job(2, GetParam());
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    MessagePtr message = Message::create(runtime, kFutureSetHandler, 3);
    message->envelope().flags |= kTracedFlag;
    runtime.send(1, std::move(message));
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("too short for the number"), std::string::npos) << failure;
}

TEST_P(ObserverTest, EntryMethodsBeginAndEndAlsoAroundSuspendedOnes) {
  testing::InProcessJob job(1, GetParam());
  observe(job, {0});
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto nodes = Array<Node>::create(runtime, 2);
    Future<> gate(runtime);
    Future<int> waiting = nodes[0].call<&Node::wait>(gate);
    Future<int> also_waiting = nodes[1].call<&Node::wait>(gate);
    nodes[0].send<&Node::quick>();
    nodes[1].send<&Node::open>(gate);
    const int first = co_await waiting;
    const int second = co_await also_waiting;
    EXPECT_EQ(first + second, 1);
  }),
            "");
  stop(job);
  std::string seen;
  for (const auto& [method, began] : recorders[0].entries) {
    const std::size_t at = method.rfind(':');
    seen += (began ? "+" : "-") + method.substr(at + 1) + " ";
  }
  EXPECT_EQ(seen, "+wait +wait +quick -quick +open -open -wait -wait ");
  EXPECT_TRUE(recorders[0].running.empty());
}

struct Field : Chare<Field> {
  double fill(Payload<double> values) { return static_cast<double>(values.size()); }
  Task<> exchange(int partner, memory::Kind kind) {
    Channel channel(*this, proxy()[partner]);
    const std::size_t size_bytes = 300'000;
    testing::TestMemory to(runtime().memory(), {kind, 0}, size_bytes);
    testing::TestMemory from(runtime().memory(), {kind, 0}, size_bytes, 1);
    for (int i = 0; i < 4; ++i) {
      Operation sent = channel.send(from.buffer());
      co_await channel.recv(to.buffer());
      co_await std::move(sent);
    }
  }
};

std::span<double> doubles_in(testing::TestMemory& memory) {
  return {static_cast<double*>(memory.buffer().data), memory.buffer().size_bytes / sizeof(double)};
}

// The sums of what an observer is told are those of `weft run --stats`.
TEST_P(ObserverTest, TransfersBeginAndEndByThePathThatStatsCounts) {
  for (const auto staging : {machine::StagingMode::kDevice, machine::StagingMode::kHost}) {
    testing::InProcessJob job(2, GetParam(), {}, staging);
    recorders.clear();
    observe(job, {0, 1});
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto fields = Group<Field>::create(runtime);
      for (const Kind kind : {Kind::kHost, Kind::kEmulated}) {
        Future<> first = fields[0].call<&Field::exchange>(1, kind);
        Future<> second = fields[1].call<&Field::exchange>(0, kind);
        co_await first;
        co_await second;
        testing::TestMemory values(runtime.memory(), {kind, 0}, 80'000, 1);
        for (const int to : {0, 1}) {
          const double size = co_await fields[to].call<&Field::fill>(nocopy(doubles_in(values)));
          EXPECT_EQ(size, 10'000);
        }
      }
      co_await runtime.quiescence();
    }),
              "");
    for (int pe = 0; pe < 2; ++pe) {
      Recorder& recorder = recorders[static_cast<std::size_t>(pe)];
      EXPECT_TRUE(recorder.moving.empty()) << recorder.moving.size() << " transfers did not end";
      EXPECT_EQ(recorder.failed_transfers, 0);
      decltype(recorder.moved) counted;
      for (const machine::TransportUse& use : job.runtime(pe).machine().transport_use()) {
        const Recorder::Way way{machine::transfer_type_name(use.type), machine::transfer_path_name(use.path),
                                use.kind};
        counted[way] = {use.messages, use.bytes};
      }
      EXPECT_EQ(recorder.moved, counted) << pe;
      EXPECT_GE(counted.size(), 3u);
    }
    stop(job);
  }
}

TEST_P(ObserverTest, IdlenessBeginsAndEnds) {
  testing::InProcessJob job(1, GetParam());
  observe(job, {0});
  EXPECT_EQ(job.run([this](Runtime& runtime) -> Task<> {
    // On a busy machine a sleep may be over before the PE is idle.
    for (int i = 0; i < 1000 && recorders[0].idles < 3; ++i) {
      co_await runtime.sleep(0.001);
      EXPECT_FALSE(recorders[0].is_idle) << "work runs";
    }
  }),
            "");
  EXPECT_GE(recorders[0].idles, 3);
  stop(job);
  EXPECT_FALSE(recorders[0].is_idle) << "an observer that leaves sees the end";
}

INSTANTIATE_TEST_SUITE_P(Machines, ObserverTest, ::testing::Values("loopback", "ucx"));

}  // namespace
}  // namespace weft::runtime
