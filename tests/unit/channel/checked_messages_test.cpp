// Check mode: a receive of other elements than were sent is an error that names both.
#include "models/channel/checked_messages.h"

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/channel/channel_pair.h"

namespace weft::channel {
namespace {

using base::StatusCode;
using testing::TestMemory;

TEST(Description, AgreesWithTheSameElementsAndWithPlainBytes) {
  const std::array<std::int64_t, 2> shape{10, 20};
  const std::array<std::int64_t, 2> turned{20, 10};
  const std::array<std::int64_t, 3> with_one{10, 1, 20};
  const auto of = [](std::string_view type, std::span<const std::int64_t> extents) {
    const Contents contents{type, 8, extents};
    return Description(&contents, 1600);
  };
  const Description matrix = of("float64", shape);
  EXPECT_TRUE(matrix.agrees_with(of("float64", shape)));
  EXPECT_TRUE(matrix.agrees_with(of("float64", with_one)));
  EXPECT_TRUE(matrix.agrees_with(of("float64", {}))) << "flat";
  EXPECT_TRUE(matrix.agrees_with(Description(nullptr, 1600)));
  EXPECT_TRUE(Description(nullptr, 1600).agrees_with(matrix));
  EXPECT_FALSE(matrix.agrees_with(of("float64", turned)));
  EXPECT_FALSE(matrix.agrees_with(of("int64", shape)));
  EXPECT_EQ(matrix.text(), "float64[10, 20]");
  EXPECT_EQ(of("int64", {}).text(), "int64[200]");
  EXPECT_EQ(Description(nullptr, 1600).text(), "1600 bytes");
}

TEST(Description, ElementsAreNamedAsNumPyDoes) {
  EXPECT_EQ(element_type_name<double>(), "float64");
  EXPECT_EQ(element_type_name<const float>(), "float32");
  EXPECT_EQ(element_type_name<int>(), "int32");
  EXPECT_EQ(element_type_name<long>(), element_type_name<std::int64_t>());
  EXPECT_EQ(element_type_name<std::uint8_t>(), "uint8");
  EXPECT_EQ(element_type_name<std::complex<double>>(), "complex128");
  EXPECT_EQ(element_type_name<bool>(), "bool");
  struct Particle {
    double x;
  };
  EXPECT_EQ(element_type_name<char>(), "");
  EXPECT_EQ(element_type_name<std::byte>(), "");
  EXPECT_EQ(element_type_name<Particle>(), "");
}

struct CheckedMessagesTest : ChannelPair, ::testing::TestWithParam<std::tuple<std::string, int>> {
  CheckedMessagesTest() : ChannelPair(std::get<int>(GetParam()), std::get<std::string>(GetParam())) {
    for (int pe = 0; pe < job.num_pes(); ++pe) job.runtime(pe).model<Channels>().turn_on_checks();
  }
  static void expect_told(const Outcome& received, const std::string& asked, const std::string& sent) {
    EXPECT_EQ(received.status.code(), StatusCode::kInvalidArgument);
    const std::string message(received.status.message());
    for (const std::string& part : {std::string("Node[1] - "), asked, sent}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
};

TEST_P(CheckedMessagesTest, OtherElementsOfTheSameSizeAreAnError) {
  connect(0xffff'ffff);
  std::vector<double> out{1, 2, 3};
  std::vector<std::int64_t> in(3);
  for (const bool sends_first : {false, true}) {
    OutcomePtr sent;
    if (sends_first) {
      sent = watch(channels[0].send(out));
      settle();
    }
    const OutcomePtr received = watch(channels[1].recv(in));
    if (!sends_first) sent = watch(channels[0].send(out));
    finish({sent, received});
    EXPECT_TRUE(sent->status.ok());
    expect_told(*received, "int64[3]", "float64[3]");
  }
  std::vector<double> same(3);
  const OutcomePtr received = watch(channels[1].recv(same));
  finish({watch(channels[0].send(out)), received});
  EXPECT_TRUE(received->status.ok()) << received->status.to_string();
  EXPECT_EQ(same, out);
}

// The peer is not known yet, so the sends wait with what they consist of.
TEST_P(CheckedMessagesTest, MessagesFromBeforeThePeerWasKnownAreCheckedToo) {
  channels[0] = Node::all[0]->to_the_other();
  std::vector<float> out{1, 2, 3, 4};
  const OutcomePtr sent = watch(channels[0].send(out));
  channels[1] = Node::all[1]->to_the_other();
  std::vector<std::int32_t> in(4);
  const OutcomePtr received = watch(channels[1].recv(in));
  finish({sent, received});
  expect_told(*received, "int32[4]", "float32[4]");
}

TEST_P(CheckedMessagesTest, DeviceMemoryOnEveryPathIsChecked) {
  connect();
  const std::size_t last = static_cast<std::size_t>(job.num_pes()) - 1;
  TestMemory out(job.memory(0), kDevice, 80, 1);
  TestMemory in(job.memory(static_cast<int>(last)), kDevice, 80, 100);
  const Contents doubles{"float64", 8, {}};
  const Contents integers{"int64", 8, {}};
  // The later ones are copied.
  for (int i = 0; i < 4; ++i) {
    const OutcomePtr received = watch(channels[1].recv(in.buffer(), &integers));
    finish({watch(channels[0].send(memory::ConstBuffer(out.buffer()), &doubles)), received});
    expect_told(*received, "int64[10]", "float64[10]");
    const OutcomePtr good = watch(channels[1].recv(in.buffer(), &doubles));
    finish({watch(channels[0].send(memory::ConstBuffer(out.buffer()), &doubles)), good});
    EXPECT_TRUE(good->status.ok()) << good->status.to_string();
    EXPECT_EQ(in.now(), out.filled());
  }
}

TEST_P(CheckedMessagesTest, OtherSizesAndFailedSendsAreToldOfAsWithoutIt) {
  connect();
  std::vector<double> out{1, 2, 3};
  std::vector<double> in(2);
  const OutcomePtr received = watch(channels[1].recv(in));
  finish({watch(channels[0].send(out)), received});
  EXPECT_EQ(received->status.code(), StatusCode::kTruncated);
  TestMemory device(job.memory(0), kDevice, 24, 1);
  memory::EmulatedFaults faults;
  faults.fail_copy = 1;
  testing::emulated(job.memory(0)).set_faults(faults);
  in.resize(3);
  const OutcomePtr failed = watch(channels[1].recv(in));
  finish({watch(channels[0].send(memory::ConstBuffer(device.buffer()))), failed});
  EXPECT_EQ(failed->status.code(), StatusCode::kPeerFailed);
}

TEST_P(CheckedMessagesTest, WhatNothingSendsEndsWithTheJob) {
  connect();
  std::vector<double> in(3);
  auto* receiving = std::move(channels[1].recv(in)).release();
  settle();
  EXPECT_FALSE(receiving->is_done());
  job.runtime(job.num_pes() - 1).close();
  EXPECT_TRUE(receiving->is_done() && receiving->status().failed());
  receiving->drop_handle();
}

INSTANTIATE_TEST_SUITE_P(Machines, CheckedMessagesTest,
                         ::testing::Combine(::testing::Values("loopback", "ucx"), ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param)) +
                                  "_pe";
                         });

}  // namespace
}  // namespace weft::channel
