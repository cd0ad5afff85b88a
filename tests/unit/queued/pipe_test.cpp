// Pipes between two PEs, and of one PE to itself, on emulated devices.
#include "queued/pipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/rma/pgas_job.h"

namespace weft::queued {
namespace {

using base::Status;
using base::StatusCode;
using testing::PgasJob;
using testing::TestMemory;

constexpr memory::Place kDevice{memory::Kind::kEmulated, 0};
constexpr std::size_t kPiece = Pipe::kPieceBytes;

// One end, with a stream.
struct PipeEnd {
  PipeEnd(PgasJob& job, int pe_in)
      : pe(pe_in),
        kind(testing::emulated(job.memory(pe_in))),
        stream(kind.create_stream(0).value()),
        watch(job.runtime(pe_in), "the test"),
        pipe(job.pgas(pe_in), kDevice, watch, [] { return std::string("the pipe"); }) {}

  int pe;
  memory::EmulatedBackend& kind;
  memory::StreamHandle stream;
  StreamWatch watch;
  Pipe pipe;
};

struct PipeTest : ::testing::Test {
  explicit PipeTest(int num_pes = 2)
      : job(num_pes), ends{std::make_unique<PipeEnd>(job, 0), std::make_unique<PipeEnd>(job, num_pes - 1)} {}

  PipeEnd& end(std::size_t number) { return *ends[number]; }
  // Runs on PE 0; returns the error, if there is one.
  std::string run(std::function<Task<>()> body) {
    std::string error;
    job.run_on(0, [&](pgas::Pgas&) -> Task<> {
      try {
        co_await body();
      } catch (const std::exception& thrown) {
        error = thrown.what();
      }
    });
    return error;
  }
  // Each end's work on its own PE.
  std::string run_both(const std::function<Task<>(PipeEnd&)>& body) {
    std::array<bool, 2> is_over{};
    std::string errors;
    const auto one = [&](PipeEnd& at, bool& over) -> Task<> {
      try {
        co_await body(at);
      } catch (const std::exception& thrown) {
        errors += thrown.what();
      }
      over = true;
    };
    for (std::size_t i = 0; i < 2; ++i) job.runtime(end(i).pe).spawn(one(end(i), is_over[i]), "the test");
    EXPECT_EQ(job.run_until([&] { return is_over[0] && is_over[1]; }), "");
    return errors;
  }
  std::string connect() {
    std::array<rma::GlobalAddress, 2> grants;
    std::string errors = run_both([&](PipeEnd& at) -> Task<> {
      const rma::GlobalAddress grant = co_await at.pipe.grant();
      grants[&at == ends[0].get() ? 0 : 1] = grant;
    });
    return errors + run_both([&](PipeEnd& at) -> Task<> {
             const std::size_t other = &at == ends[0].get() ? 1 : 0;
             co_await at.pipe.accept(end(other).pe, grants[other]);
           });
  }
  std::string settle() {
    return run_both([](PipeEnd& at) -> Task<> { co_await at.watch.over(); });
  }
  TestMemory memory(std::size_t number, std::size_t size_bytes, std::uint8_t first = 0) {
    return {job.memory(end(number).pe), kDevice, size_bytes, first};
  }
  // As many pieces at once as there are places.
  void send(std::size_t from, TestMemory& message, std::uint32_t label = 1) {
    PipeEnd& at = end(from);
    queue(at, at.stream, message.buffer(), [&](std::size_t piece, MessageQueue& queue) {
      at.pipe.send_piece(message.buffer(), label, piece, queue);
    });
  }
  void receive(std::size_t to, TestMemory& message, std::uint32_t label = 1) {
    receive(to, message, label, end(to).stream);
  }
  void receive(std::size_t to, TestMemory& message, std::uint32_t label, memory::StreamHandle stream) {
    PipeEnd& at = end(to);
    queue(at, stream, message.buffer(), [&](std::size_t piece, MessageQueue& queue) {
      at.pipe.receive_piece(message.buffer(), label, piece, queue);
    });
  }
  static void queue(PipeEnd& at, memory::StreamHandle stream, const memory::Buffer& message,
                    const std::function<void(std::size_t, MessageQueue&)>& add) {
    MessageQueue queue(at.kind, kDevice, stream);
    for (std::size_t i = 0; i < Pipe::num_pieces(message.size_bytes); ++i) {
      add(i, queue);
      if (i % Pipe::kNumPlaces == Pipe::kNumPlaces - 1) queue.flush();
    }
    queue.flush();
  }

  PgasJob job;
  std::array<std::unique_ptr<PipeEnd>, 2> ends;
};

struct PipeOfPes : PipeTest, ::testing::WithParamInterface<int> {
  PipeOfPes() : PipeTest(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(OneAndTwo, PipeOfPes, ::testing::Values(1, 2));

TEST(Pieces, OfAMessageAreAtLeastOne) {
  EXPECT_EQ(Pipe::num_pieces(0), 1U);
  EXPECT_EQ(Pipe::num_pieces(1), 1U);
  EXPECT_EQ(Pipe::num_pieces(kPiece), 1U);
  EXPECT_EQ(Pipe::num_pieces(kPiece + 1), 2U);
  EXPECT_EQ(Pipe::num_pieces(12 * kPiece), 12U);
}

TEST_P(PipeOfPes, MessagesOfAllSizesArriveInOrder) {
  ASSERT_EQ(connect(), "");
  std::vector<TestMemory> out;
  std::vector<TestMemory> in;
  std::uint32_t label = 0;
  // An end whose only stream sends more than the places hold would wait before it receives.
  const std::array receiving{end(0).kind.create_stream(0).value(), end(1).kind.create_stream(0).value()};
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{8}, kPiece, kPiece + 8, 9 * kPiece + 1, std::size_t{1}}) {
    for (std::size_t from = 0; from < 2; ++from) {
      out.push_back(memory(from, size, static_cast<std::uint8_t>(++label)));
      in.push_back(memory(1 - from, size));
      send(from, out.back(), label);
    }
    for (std::size_t from = 0; from < 2; ++from) {
      const std::uint32_t expected = label - 1 + static_cast<std::uint32_t>(from);
      receive(1 - from, in[in.size() - 2 + from], expected, receiving[1 - from]);
    }
    ASSERT_EQ(settle(), "");
  }
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(in[i].now(), out[i].filled()) << i;
}

// As StreamTransfers of MPI does it: see there.
TEST_P(PipeOfPes, PiecesLetBothSendLargeMessagesAtOnce) {
  ASSERT_EQ(connect(), "");
  const std::size_t size = 12 * kPiece - 5;
  std::vector<TestMemory> out;
  std::vector<TestMemory> in;
  for (std::size_t at = 0; at < 2; ++at) {
    out.push_back(memory(at, size, static_cast<std::uint8_t>(at + 3)));
    in.push_back(memory(at, size));
  }
  for (std::size_t at = 0; at < 2; ++at) {
    PipeEnd& here = end(at);
    MessageQueue queue(here.kind, kDevice, here.stream);
    for (std::size_t round = 0; round < Pipe::num_pieces(size); round += Pipe::kNumPlaces) {
      for (std::size_t i = 0; i < Pipe::kNumPlaces; ++i) {
        here.pipe.receive_piece(in[at].buffer(), 7, round + i, queue);
        here.pipe.send_piece(out[at].buffer(), 7, round + i, queue);
      }
      queue.flush();
    }
  }
  ASSERT_EQ(settle(), "");
  EXPECT_EQ(in[0].now(), out[1].filled());
  EXPECT_EQ(in[1].now(), out[0].filled());
}

TEST_F(PipeTest, ASenderWaitsForAPlace) {
  ASSERT_EQ(connect(), "");
  TestMemory out = memory(0, 8, 5);
  TestMemory in = memory(1, 8);
  std::size_t num_sent = 0;
  for (std::size_t i = 0; i < Pipe::kNumPlaces + 2; ++i) {
    send(0, out);
    ASSERT_TRUE(end(0).kind.launch(end(0).stream, 0, [&num_sent] { return ++num_sent, Status(); }).ok());
  }
  job.settle();
  EXPECT_EQ(num_sent, Pipe::kNumPlaces);
  receive(1, in);
  job.settle();
  EXPECT_EQ(num_sent, Pipe::kNumPlaces + 1);
  EXPECT_EQ(in.now(), out.filled());
  for (std::size_t i = 1; i < Pipe::kNumPlaces + 2; ++i) receive(1, in);
  EXPECT_EQ(settle(), "");
}

// Two sends and two receives at once, the second send of which waits for a place: the others go on, and what follows waits for all.
TEST_F(PipeTest, EndsThatAreQueuedTogetherGoOnSideBySide) {
  ASSERT_EQ(connect(), "");
  TestMemory out = memory(0, 8, 5);
  TestMemory in = memory(1, 8);
  TestMemory back = memory(1, 8, 50);
  TestMemory got = memory(0, 8);
  for (std::size_t i = 1; i < Pipe::kNumPlaces; ++i) send(0, out);
  bool is_over = false;
  {
    PipeEnd& at = end(0);
    MessageQueue queue(at.kind, kDevice, at.stream);
    for (int i = 0; i < 2; ++i) at.pipe.send_piece(out.buffer(), 1, 0, queue);
    for (int i = 0; i < 2; ++i) at.pipe.receive_piece(got.buffer(), 1, 0, queue);
    queue.flush();
    ASSERT_TRUE(at.kind.launch(at.stream, 0, [&is_over] { return is_over = true, Status(); }).ok());
  }
  send(1, back);
  job.settle();
  EXPECT_EQ(got.now(), back.filled()) << "a receive is behind a send that waits";
  send(1, back);
  job.settle();
  EXPECT_FALSE(is_over);
  for (std::size_t i = 0; i < Pipe::kNumPlaces + 1; ++i) receive(1, in);
  EXPECT_EQ(settle(), "");
  EXPECT_TRUE(is_over);
  EXPECT_EQ(in.now(), out.filled());
}

TEST_F(PipeTest, AMessageIsWhatTheSendersStreamHasMade) {
  ASSERT_EQ(connect(), "");
  TestMemory out = memory(0, 8);
  TestMemory in = memory(1, 8);
  std::uint8_t* const bytes = testing::view(job.memory(0), out.buffer());
  std::vector<std::uint8_t> got;
  receive(1, in);
  const std::uint8_t* const arrived = testing::view(job.memory(1), in.buffer());
  ASSERT_TRUE(
      end(1)
          .kind.launch(end(1).stream, 0, [&got, arrived] { return got.push_back(*arrived), Status(); })
          .ok());
  ASSERT_TRUE(end(0).kind.launch(end(0).stream, 0, [bytes] { return *bytes = 77, Status(); }).ok());
  send(0, out);
  end(1).watch.note(kDevice, end(1).stream, nullptr);  // the kernel
  ASSERT_EQ(settle(), "");
  EXPECT_EQ(got, std::vector<std::uint8_t>{77});
}

TEST_F(PipeTest, AnotherLabelOrSizeFailsAndCopiesNothing) {
  const struct {
    std::size_t size;
    std::uint32_t label;
    const char* words;
  } wrong[] = {{8, 2, "the label 0x200000008 and finds 0x100000008"},
               {16, 1, "the label 0x100000010 and finds 0x100000008"},
               {kPiece, 1, "the label 0x100040000 and finds 0x100000008"}};
  for (const auto& [size, label, words] : wrong) {
    ends = {std::make_unique<PipeEnd>(job, 0), std::make_unique<PipeEnd>(job, 1)};
    ASSERT_EQ(connect(), "");
    TestMemory out = memory(0, 8, 100);
    TestMemory in = memory(1, size);
    send(0, out);
    receive(1, in, label);
    const std::string error = settle();
    EXPECT_NE(error.find(words), std::string::npos) << error;
    EXPECT_EQ(in.now(), in.filled());
  }
}

TEST_F(PipeTest, AGraphGoesOnWhereTheLaunchBeforeHasStopped) {
  ASSERT_EQ(connect(), "");
  std::vector<TestMemory> out;
  std::vector<TestMemory> in;
  std::array<memory::SoftwareDevice::Graph, 2> graphs;
  for (std::size_t at = 0; at < 2; ++at) {
    out.push_back(memory(at, kPiece + 8, static_cast<std::uint8_t>(at + 1)));
    in.push_back(memory(at, kPiece + 8));
  }
  for (std::size_t at = 0; at < 2; ++at) {
    ASSERT_TRUE(end(at).kind.begin_capture(end(at).stream, 0).ok());
    send(at, out[at]);
    receive(at, in[at]);
    graphs[at] = end(at).kind.end_capture(end(at).stream, 0).value();
    EXPECT_TRUE(end(at).watch.is_idle()) << "nothing is queued";
  }
  for (int launch = 0; launch < 5; ++launch) {
    for (std::size_t at = 0; at < 2; ++at)
      ASSERT_TRUE(end(at).kind.launch_graph(graphs[at], end(at).stream, 0).ok());
  }
  for (std::size_t at = 0; at < 2; ++at) send(at, out[at]);
  for (std::size_t at = 0; at < 2; ++at) receive(at, in[at]);
  ASSERT_EQ(settle(), "");
  EXPECT_EQ(in[0].now(), out[1].filled());
  EXPECT_EQ(in[1].now(), out[0].filled());
}

TEST_P(PipeOfPes, ClosesWhenBothEndsDo) {
  ASSERT_EQ(connect(), "");
  TestMemory out = memory(0, 8, 9);
  TestMemory in = memory(1, 8);
  send(0, out);
  receive(1, in);
  ASSERT_EQ(settle(), "");
  bool is_closed = false;
  const auto close_first = [&](Pipe& pipe) -> Task<> {
    co_await pipe.close();
    is_closed = true;
  };
  job.runtime(0).spawn(close_first(end(0).pipe), "the test");
  job.settle();
  EXPECT_FALSE(is_closed);
  EXPECT_EQ(run_both([](PipeEnd& at) -> Task<> { co_await at.pipe.close(); }), "");
  EXPECT_EQ(job.run_until([&] { return is_closed; }), "");
  EXPECT_TRUE(end(0).pipe.begin_close().empty());
  ASSERT_EQ(connect(), "") << "it may be connected again";
  send(1, in);
  receive(0, out);
  EXPECT_EQ(settle(), "");
}

// What a peer grants is a claim.
TEST_F(PipeTest, AGrantThatNoEndMakesIsRefused) {
  const rma::Segment small = job.pgas(1).make_segment(1 << 20, kDevice);
  const rma::Segment host = job.pgas(1).make_segment(2 << 20, memory::Place());
  const auto accept = [&](rma::GlobalAddress grant) {
    return run([&, grant]() -> Task<> {
      PipeEnd here(job, 0);
      co_await here.pipe.grant();
      co_await here.pipe.accept(1, grant);
    });
  };
  EXPECT_NE(accept({}).find("PE 1 grants places that are none"), std::string::npos);
  const std::string too_small = accept(small.address());
  EXPECT_NE(too_small.find("bytes behind it"), std::string::npos) << too_small;
  EXPECT_NE(accept(host.address()).find("does not reach"), std::string::npos);
}

}  // namespace
}  // namespace weft::queued
