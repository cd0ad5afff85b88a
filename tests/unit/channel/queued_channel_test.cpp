// Messages that streams order, between two chares of one PE or of two, on emulated devices.
#include "weft/channel/queued_channel.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "queued/link.h"
#include "tests/unit/channel/queued_partners.h"

namespace weft::channel {
namespace {

using base::Status;
using base::StatusCode;

struct QueuedLoop : QueuedChannelTest,
                    ::testing::WithParamInterface<std::tuple<int, std::size_t, std::size_t, bool>> {
  QueuedLoop() : QueuedChannelTest(std::get<0>(GetParam())) {
    prepare(std::get<1>(GetParam()), std::get<2>(GetParam()));
    partner(0).exchanges = std::get<3>(GetParam());  // the peer need not do the same
  }
};

TEST_P(QueuedLoop, NeedsNoCpuBetweenItsSteps) {
  constexpr std::size_t kSteps = 9;
  ASSERT_EQ(connect(), "");
  for (std::size_t step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < 2; ++i) partner(i).queue_step();
  }
  EXPECT_TRUE(partner(0).got.empty());
  settle();
  expect_messages(kSteps);
  partner(0).channel.send(partner(0).out, partner(0).stream);  // no receive follows
  EXPECT_EQ(close(), "");
  EXPECT_EQ(connect(), "") << "it may be connected again";
  for (std::size_t i = 0; i < 2; ++i) partner(i).queue_step();
  settle();
  expect_messages(kSteps + 1);
}

TEST_P(QueuedLoop, IsCapturedOnceAndLaunchedOften) {
  ASSERT_EQ(connect(), "");
  for (std::size_t n = 0; n < partner(0).landings.size(); ++n) {  // as programs do to warm up
    for (std::size_t i = 0; i < 2; ++i) partner(i).queue_step();
  }
  settle();
  const std::size_t before = partner(0).got.size();
  std::array<memory::SoftwareDevice::Graph, 2> graphs;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(partner(i).kind().begin_capture(partner(i).stream, 0).ok());
    for (std::size_t n = 0; n < partner(i).landings.size(); ++n) partner(i).queue_step();
    graphs[i] = partner(i).kind().end_capture(partner(i).stream, 0).value();
  }
  constexpr std::size_t kLaunches = 5;
  for (std::size_t launch = 0; launch < kLaunches; ++launch) {
    for (std::size_t i = 0; i < 2; ++i)
      ASSERT_TRUE(partner(i).kind().launch_graph(graphs[i], partner(i).stream, 0).ok());
  }
  // What is not in a graph follows it.
  for (std::size_t n = 0; n < partner(0).landings.size(); ++n) {
    for (std::size_t i = 0; i < 2; ++i) partner(i).queue_step();
  }
  settle();
  expect_messages(before + (kLaunches + 1) * partner(0).landings.size());
}

TEST_P(QueuedLoop, QuiescenceWaitsForIt) {
  ASSERT_EQ(connect(), "");
  int num_over = 0;
  for (std::size_t i = 0; i < 2; ++i) partner(i).queue_step();
  EXPECT_FALSE(partner(0).channel.over().is_ready());
  EXPECT_EQ(run([&](Array<Partner>) -> Task<> {
              co_await job.runtime(0).quiescence();
              for (std::size_t i = 0; i < 2; ++i) num_over += partner(i).channel.over().is_ready() ? 1 : 0;
            }),
            "");
  EXPECT_EQ(num_over, 2);
  settle();
}

INSTANTIATE_TEST_SUITE_P(All, QueuedLoop,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Values(kSmall, kLarge),
                                            ::testing::Values(std::size_t{2}, std::size_t{3}),
                                            ::testing::Bool()));

// Two chares with several channels between them, each of which has its own size of messages.
struct QueuedExchange : QueuedChannelTest, ::testing::WithParamInterface<std::size_t> {
  struct End {
    std::vector<memory::Buffer> out;
    std::vector<QueuedChannel> channels;
    std::vector<std::vector<std::uint64_t>> got;
    std::vector<QueuedChannel::Side> sides() {
      std::vector<QueuedChannel::Side> result;
      for (std::size_t i = 0; i < out.size(); ++i) result.push_back({&channels[i], out[i]});
      return result;
    }
  };
  void make_channels(const std::vector<std::size_t>& sizes) {
    for (std::size_t i = 0; i < 2; ++i) {
      partner(i).prepare(kSmall, 2);
      memory::Memory& memory = partner(i).runtime().memory();
      for (std::size_t n = 0; n < sizes.size(); ++n) {
        std::vector<memory::Buffer> landings;
        for (int k = 0; k < 2; ++k) landings.push_back(memory.allocate(sizes[n], kEmulated0).value());
        ends[i].out.push_back(memory.allocate(sizes[n], kEmulated0).value());
        ends[i].channels.emplace_back(partner(i), partner(i).proxy()[1 - static_cast<int>(i)], kEmulated0,
                                      landings, static_cast<std::uint32_t>(n + 1));
        ends[i].got.emplace_back();
      }
    }
    EXPECT_EQ(run([this](Array<Partner>) -> Task<> {
                std::vector<Future<>> connecting;
                for (End& end : ends)
                  for (QueuedChannel& channel : end.channels) connecting.push_back(channel.connect());
                for (const Future<>& one : connecting) co_await one;
              }),
              "");
  }
  void queue_step(std::size_t i, std::uint64_t step) {
    End& end = ends[i];
    Partner& one = partner(i);
    one.launch([&end, &one, i, step] {
      for (std::size_t n = 0; n < end.out.size(); ++n) one.last_word(end.out[n]) = 1000 * i + 100 * n + step;
    });
    const std::vector<memory::Buffer> landings = QueuedChannel::exchange_all(end.sides(), one.stream);
    one.launch([&end, &one, landings] {
      for (std::size_t n = 0; n < landings.size(); ++n) end.got[n].push_back(one.last_word(landings[n]));
    });
  }

  std::array<End, 2> ends;
};

TEST_P(QueuedExchange, HasTheMessagesOfAllChannels) {
  constexpr std::uint64_t kSteps = 5;
  std::vector<std::size_t> sizes(GetParam(), kSmall);
  sizes[1] = kMedium;
  sizes[2] = kLarge;
  make_channels(sizes);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < 2; ++i) queue_step(i, step);
  }
  settle();
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t n = 0; n < sizes.size(); ++n) {
      ASSERT_EQ(ends[i].got[n].size(), kSteps);
      for (std::uint64_t step = 0; step < kSteps; ++step)
        EXPECT_EQ(ends[i].got[n][step], 1000 * (1 - i) + 100 * n + step) << "end " << i << ", channel " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, QueuedExchange, ::testing::Values(3, 6, 19));

TEST_F(QueuedExchange, RefusesAChannelThatIsThereTwice) {
  make_channels({kSmall});
  std::vector<QueuedChannel::Side> sides = ends[0].sides();
  EXPECT_TRUE(QueuedChannel::exchange_all({}, partner(0).stream).empty());
  sides.push_back(sides[0]);
  try {
    QueuedChannel::exchange_all(sides, partner(0).stream);
    ADD_FAILURE();
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("is twice in an exchange"), std::string::npos) << error.what();
  }
  for (std::size_t i = 0; i < 2; ++i) queue_step(i, 7);
  settle();
  EXPECT_EQ(ends[0].got[0], std::vector<std::uint64_t>{1007}) << "nothing was queued before";
}

TEST_F(QueuedChannelTest, AReceiverThatIsLateKeepsTheSenderBack) {
  prepare(kMedium, 2);
  ASSERT_EQ(connect(), "");
  Partner& sender = partner(0);
  for (int n = 0; n < 5; ++n) {
    sender.launch([&sender] { sender.first_word(sender.out) = ++sender.num_made; });
    sender.channel.send(sender.out, sender.stream);
  }
  job.settle();
  Partner& receiver = partner(1);
  EXPECT_EQ(sender.num_made, 3U);
  EXPECT_EQ(receiver.first_word(receiver.landings[0]), 1U) << "the landing is not overwritten";
  for (std::uint64_t n = 1; n <= 5; ++n) {
    const memory::Buffer landing = receiver.channel.recv(receiver.stream);
    job.settle();
    EXPECT_EQ(receiver.first_word(landing), n);
  }
  settle();
}

TEST_F(QueuedChannelTest, WhatDoesNotFitIsRefusedInWords) {
  prepare(kSmall, 2);
  Partner& one = partner(0);
  const auto error_of = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of([&] { one.channel.send(one.out, one.stream); }).find("await connect() before"),
            std::string::npos);
  ASSERT_EQ(connect(), "");
  memory::Buffer half = one.out;
  half.size_bytes = kSmall / 2;
  const std::string wrong_size = error_of([&] { one.channel.send(half, one.stream); });
  EXPECT_NE(wrong_size.find("a message of 8 bytes does not fit: landings have 16"), std::string::npos)
      << wrong_size;
  EXPECT_NE(wrong_size.find("Partner[0] - "), std::string::npos) << wrong_size;
  std::array<std::byte, kSmall> host{};
  EXPECT_NE(
      error_of([&] { one.channel.send({host.data(), kSmall}, one.stream); }).find("a message is on host"),
      std::string::npos);
  EXPECT_NE(connect().find("is connected already"), std::string::npos);
  const auto make = [&](std::vector<memory::Buffer> landings, memory::Place device = kEmulated0) {
    return error_of([&] { QueuedChannel(one, one.proxy()[1], device, std::move(landings), 5); });
  };
  EXPECT_NE(make({one.out, half}).find("have 16 and 8 bytes"), std::string::npos);
  EXPECT_NE(make({one.out, {host.data(), kSmall, {}, nullptr}}).find("a landing is on host"),
            std::string::npos);
  EXPECT_NE(make(std::vector<memory::Buffer>(9, one.out)).find("9 landings: give it 2 to 8"),
            std::string::npos);
  EXPECT_NE(make({one.out}).find("1 landing: give it 2 to 8"), std::string::npos);
  EXPECT_NE(make({}, memory::Place()).find("host is no device"), std::string::npos);
}

TEST_F(QueuedChannelTest, ADirectionThatChangesItsStreamKeepsItsOrder) {
  prepare(kSmall, 2);
  ASSERT_EQ(connect(), "");
  Partner& sender = partner(0);
  Partner& receiver = partner(1);
  std::array<memory::StreamHandle, 2> streams = {sender.stream, sender.kind().create_stream(0).value()};
  bool is_held = true;
  ASSERT_TRUE(
      sender.kind().launch(streams[0], 0, [&] { return is_held ? Status::pending() : Status(); }).ok());
  receiver.first_word(receiver.landings[0]) = 0;
  for (std::size_t n = 0; n < 4; ++n) {
    const memory::Buffer message = sender.runtime().memory().allocate(kSmall, kEmulated0).value();
    sender.first_word(message) = n + 1;
    sender.channel.send(message, streams[n % 2]);
  }
  job.settle();
  EXPECT_EQ(receiver.first_word(receiver.landings[0]), 0U) << "a later message overtook the first";
  is_held = false;
  for (std::uint64_t n = 1; n <= 4; ++n) {
    const memory::Buffer landing = receiver.channel.recv(receiver.stream);
    job.settle();
    EXPECT_EQ(receiver.first_word(landing), n);
  }
  ASSERT_TRUE(sender.kind().begin_capture(streams[0], 0).ok());
  sender.channel.send(sender.out, streams[1]);
  EXPECT_THROW(sender.channel.send(sender.out, streams[0]), base::Error) << "it would wait for an event";
  ASSERT_TRUE(sender.kind().end_capture(streams[0], 0).ok());
  receiver.channel.recv(receiver.stream);
  settle();
}

TEST_F(QueuedChannelTest, CloseHasItsTime) {
  prepare(kSmall, 2);
  std::string early;
  run([&](Array<Partner>) -> Task<> {
    const Future<> connecting = partner(0).channel.connect();
    try {
      static_cast<void>(partner(0).channel.close());
    } catch (const base::Error& error) {
      early = error.what();
    }
    const Future<> other = partner(1).channel.connect();
    co_await connecting;
    co_await other;
    const Future<> first = partner(0).channel.close();
    const Future<> second = partner(0).channel.close();
    co_await runtime::yield_now(job.runtime(0));
    EXPECT_FALSE(first.is_ready());
    EXPECT_FALSE(second.is_ready()) << "the peer may still write to the landings";
    const Future<> closing = partner(1).channel.close();
    co_await first;
    co_await second;
    co_await closing;
  });
  EXPECT_NE(early.find("await connect() before close()"), std::string::npos) << early;
}

// Weft does not know that a graph waits.
TEST_F(QueuedChannelTest, TheEndOfTheJobEndsAGraphThatWaits) {
  prepare(kSmall, 2);
  ASSERT_EQ(connect(), "");
  Partner& one = partner(0);
  ASSERT_TRUE(one.kind().begin_capture(one.stream, 0).ok());
  one.channel.recv(one.stream);
  const auto graph = one.kind().end_capture(one.stream, 0).value();
  ASSERT_TRUE(one.kind().launch_graph(graph, one.stream, 0).ok());
  job.settle();
  EXPECT_FALSE(one.kind().is_idle(one.stream, 0));
  const memory::EventHandle event = one.kind().record(one.stream, 0).value();
  one.runtime().memory().end_steps();
  Status status = Status::pending();
  for (int i = 0; i < 10 && status.is_pending(); ++i) status = one.kind().query(event);
  EXPECT_EQ(status.code(), StatusCode::kClosed) << status.to_string();
  one.kind().release_event(event);
}

TEST_F(QueuedChannelTest, AnEndWithoutLandingsOnlySends) {
  partner(0).prepare(kSmall, 0);
  partner(1).prepare(kSmall, 2);
  ASSERT_EQ(connect(), "");
  partner(0).channel.send(partner(0).out, partner(0).stream);
  partner(1).channel.recv(partner(1).stream);
  settle();
  EXPECT_THROW(partner(0).channel.recv(partner(0).stream), base::Error);
  EXPECT_THROW(partner(1).channel.send(partner(1).out, partner(1).stream), base::Error);
}

TEST_F(QueuedChannelTest, AConnectedChareStaysAndGoesAfterClose) {
  prepare(kSmall, 2);
  ASSERT_EQ(connect(), "");
  const auto go = [this] {
    return run([](Array<Partner> all) -> Task<> { co_await all[0].call<&Partner::go>(1); });
  };
  const std::string refused = go();
  EXPECT_NE(refused.find("is a queued channel that is connected; close it before"), std::string::npos)
      << refused;
  ASSERT_EQ(close(), "");
  EXPECT_EQ(go(), "");
  ASSERT_EQ(job.run_until([this] { return Partner::all[0] != nullptr && partner(0).runtime().pe() == 1; }),
            "");
}

TEST_F(QueuedChannelTest, BothEndsSayThatADeviceDoesNotReachAPeer) {
  job.pgas(0).set_mapping(false);
  prepare(kSmall, 2);
  bool has_other_failed = false;
  auto connect_other = [](Partner& one, bool& failed) -> Task<> {
    try {
      co_await one.channel.connect();
    } catch (const base::Error& error) {
      failed = error.code() == StatusCode::kUnsupported;
    }
  };
  job.runtime(1).spawn(connect_other(partner(1), has_other_failed), "the test");
  const std::string error = run([this](Array<Partner>) -> Task<> { co_await partner(0).channel.connect(); });
  EXPECT_NE(error.find("use a weft::Channel, or MPI_Send"), std::string::npos) << error;
  EXPECT_THROW(partner(1).channel.send(partner(1).out, partner(1).stream), base::Error) << "not connected";
  EXPECT_EQ(job.run_until([&] { return has_other_failed; }), "");
}

TEST_F(QueuedChannelTest, AFailureOfTheDeviceReachesTheProgram) {
  prepare(kLarge, 2);
  ASSERT_EQ(connect(), "");
  memory::EmulatedFaults faults;
  faults.fail_copy = 1;
  partner(0).kind().set_faults(faults);
  partner(0).channel.send(partner(0).out, partner(0).stream);
  const std::string error = over();
  EXPECT_NE(error.find("as the fault injection says"), std::string::npos) << error;
}

// What a peer grants is a claim.
TEST_F(QueuedChannelTest, AGrantThatNoEndMakesIsRefused) {
  prepare(kSmall, 2);
  const rma::Segment other = job.pgas(1).make_segment(4, kEmulated0);
  const rma::Segment odd = job.pgas(1).make_segment(8192, kEmulated0);
  const auto accept = [&](const std::function<void(queued::Grant&)>& change) {
    return run([&](Array<Partner>) -> Task<> {
      queued::Link here(job.pgas(0), kEmulated0, {}, [] { return std::string("the link"); });
      queued::Grant grant = co_await here.grant();
      grant = {};
      grant.words = other.address();
      change(grant);
      co_await here.accept(1, grant);
    });
  };
  const std::string too_small = accept([](queued::Grant&) {});
  EXPECT_NE(too_small.find("behind it: the segment has 4 bytes"), std::string::npos) << too_small;
  EXPECT_NE(
      accept([&](queued::Grant& grant) { grant.words = odd.address().moved_by(2); }).find("not aligned"),
      std::string::npos);
  EXPECT_NE(accept([](queued::Grant& grant) { grant.num_landings = 9; }).find("places that are none"),
            std::string::npos);
  EXPECT_NE(accept([](queued::Grant& grant) { grant.words = {}; }).find("places that are none"),
            std::string::npos);
  EXPECT_NE(accept([](queued::Grant& grant) { grant.num_landings = 1; }).find("places that are none"),
            std::string::npos);
  EXPECT_NE(accept([](queued::Grant& grant) { grant.num_landings = 2; }).find("places that are none"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::channel
