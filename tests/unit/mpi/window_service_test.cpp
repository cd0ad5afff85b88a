// The target of accesses by messages, and a rank that sends what no origin sends, or more than the target holds at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/pgas/pgas.h"

#include "models/mpi/datatype/basic_type.h"
#include "models/mpi/rank.h"
#include "models/mpi/window/window.h"
#include "models/mpi/window/window_creation.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::MpiJob;

constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 20;

AccessHeader access_header(AccessKind kind, std::uint64_t size_bytes, std::uint32_t number) {
  AccessHeader header;
  header.kind = kind;
  header.size_bytes = size_bytes;
  header.num_runs = 1;
  header.number = number;
  header.flags = kRunsInside;
  if (header.is_accumulate()) {
    header.unit = static_cast<std::uint16_t>(predefined_number(MPI_DOUBLE));
    header.operation = static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(MPI_SUM));
  }
  return header;
}

// Rank 1 sends to the window of rank 0.
class WindowService : public ::testing::Test {
 protected:
  WindowService() {
    for (int pe = 0; pe < 2; ++pe) job_.runtime(pe).install<pgas::Pgas>();
    auto all = std::make_shared<Members>(2);
    std::iota(all->begin(), all->end(), 0);
    for (int pe = 0; pe < 2; ++pe) {
      auto world = Ref<Communicator>::adopt(
          new Communicator(job_.ranks(pe), kWorldContext, {all, pe, nullptr}, 0, this_rank().errors_return));
      job_.runtime(pe).spawn(make(std::move(world), windows_[static_cast<std::size_t>(pe)]), "a rank");
    }
    EXPECT_EQ(job_.run_until([&] { return windows_[0] && windows_[1]; }), "");
  }

  Communicator& sender() { return windows_[1]->communicator(); }
  Ref<SendRequest> send(int tag, std::span<const std::byte> bytes) {
    return sender().engine().send(sender().address(0, tag), DataView::of_bytes(bytes.data(), bytes.size()),
                                  SendMode::kStandard);
  }
  // The request of an access to the first bytes of the window, with so many bytes behind it.
  void request(const AccessHeader& header, std::size_t data_bytes = 0) {
    request(header, data_bytes, {0, header.size_bytes, 1, 0});
  }
  void request(const AccessHeader& header, std::size_t data_bytes, const WindowRun& run) {
    const std::size_t run_bytes = (header.flags & kRunsInside) != 0 ? sizeof run : 0;
    std::vector<std::byte> message(sizeof header + run_bytes + data_bytes);
    std::memcpy(message.data(), &header, sizeof header);
    std::memcpy(message.data() + sizeof header, &run, run_bytes);
    send(kRequestTag, kept(std::move(message)));
  }
  // Bytes that stay until the job has ended.
  std::span<const std::byte> kept(std::vector<std::byte> bytes) {
    return sent_.emplace_back(std::move(bytes));
  }
  std::span<const std::byte> kept(const std::vector<WindowRun>& runs) {
    const auto bytes = std::as_bytes(std::span(runs));
    return kept(std::vector(bytes.begin(), bytes.end()));
  }
  // What ends the job; an error if nothing does.
  std::string refusal() {
    for (int turn = 0; turn < 100 && job_.runtime(0).failure().empty(); ++turn) {
      job_.runtime(0).step();
      job_.runtime(1).step();
    }
    return job_.runtime(0).failure();
  }
  Ref<ReceiveRequest> receive(int tag, std::span<std::byte> bytes) {
    return sender().engine().receive(sender().key(0, tag), DataView::of_bytes(bytes.data(), bytes.size()));
  }

  std::list<std::vector<std::byte>> sent_;
  MpiJob job_{2};
  std::array<Ref<Window>, 2> windows_;

 private:
  static runtime::Task<> make(Ref<Communicator> world, Ref<Window>& made) {
    WindowMemory memory;
    memory.flavor = MPI_WIN_FLAVOR_ALLOCATE;
    memory.size_bytes = kWindowBytes;
    made = co_await create_window(std::move(world), memory, false, this_rank().errors_return);
  }
};

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(WindowService, AGetOfMoreBytesInItsReplyThanFitIsRefused) {
  AccessHeader header = access_header(AccessKind::kGet, kMostMessageBytes + 8, 1);
  header.flags |= kReplyInside;
  request(header);
  expect_says(refusal(), "wants more bytes in its reply than fit");
}

TEST_F(WindowService, AnOperatorThatIsNotDefinedForTheValuesIsRefused) {
  AccessHeader header = access_header(AccessKind::kAccumulate, 8, 1);
  header.operation = static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(MPI_BAND));
  header.flags |= kDataInside;
  request(header, 8);
  expect_says(refusal(), "by an operator that is not defined for them");
}

TEST_F(WindowService, DataOfAnotherSizeThanAnnouncedIsRefused) {
  request(access_header(AccessKind::kPut, 9000, 1));
  send(data_tag(1), kept(std::vector<std::byte>(8999)));
  expect_says(refusal(), "of rank 1 of a window is followed by 8999 bytes, not 9000");
}

TEST_F(WindowService, MoreDataThanAnnouncedIsRefusedOfAQueuedAccumulate) {
  request(access_header(AccessKind::kAccumulate, 9000, 1));
  request(access_header(AccessKind::kAccumulate, 9000, 2));
  send(data_tag(2), kept(std::vector<std::byte>(9008)));
  expect_says(refusal(), "of rank 1 of a window is followed by ");
}

TEST_F(WindowService, FewerRunsThanAnnouncedAreRefused) {
  AccessHeader header = access_header(AccessKind::kPut, 2400, 1);
  header.num_runs = 300;
  header.flags = 0;
  request(header);
  send(data_tag(1), kept(std::vector<WindowRun>(299, {0, 8, 1, 0})));
  expect_says(refusal(), "is followed by 9568 bytes, not 9600");
}

TEST_F(WindowService, RunsThatFollowAndHaveAnotherSizeAreRefused) {
  AccessHeader header = access_header(AccessKind::kPut, 2400, 1);
  header.num_runs = 300;
  header.flags = 0;
  request(header);
  send(data_tag(1), kept(std::vector<WindowRun>(300, {0, 9, 1, 0})));
  expect_says(refusal(), "has runs of another size than its 2400 bytes");
}

// No memory is taken for what cannot be there, so the claim is an error of the access.
TEST_F(WindowService, AnAccessOfMoreBytesThanTheWindowIsAnError) {
  for (const AccessKind kind : {AccessKind::kPut, AccessKind::kAccumulate, AccessKind::kGetAccumulate}) {
    const auto number = static_cast<std::uint32_t>(kind) + 1;
    ReplyHeader reply;
    const auto answered = receive(reply_tag(number), std::as_writable_bytes(std::span(&reply, 1)));
    request(access_header(kind, std::uint64_t{1} << 60, number));
    send(data_tag(number), {});
    job_.wait(answered);
    EXPECT_EQ(reply.error, MPI_ERR_RMA_RANGE);
  }
}

TEST_F(WindowService, QueuedAccumulatesTakeTheirDataAFewAtATime) {
  constexpr std::uint32_t kAccesses = 40;
  const std::vector<double> ones(kWindowBytes / sizeof(double), 1.0);
  const auto ones_bytes = std::as_bytes(std::span(ones));
  const auto data = kept(std::vector(ones_bytes.begin(), ones_bytes.end()));
  for (std::uint32_t i = 0; i < kAccesses; ++i)
    request(access_header(AccessKind::kAccumulate, kWindowBytes, i));
  std::vector<Ref<SendRequest>> sends;
  for (std::uint32_t i = 1; i < kAccesses; ++i) sends.push_back(send(data_tag(i), data));
  job_.settle();
  EXPECT_EQ(std::ranges::count_if(sends, [](const auto& one) { return one->is_complete(); }), 15)
      << "16 MiB at once, of which the first one has not come";
  ReplyHeader reply;
  const auto answered = receive(reply_tag(kAccesses - 1), std::as_writable_bytes(std::span(&reply, 1)));
  send(data_tag(0), data);
  job_.wait(answered);
  EXPECT_EQ(reply.error, MPI_SUCCESS);
  const auto* const memory = static_cast<const double*>(windows_[0]->memory().base);
  EXPECT_EQ(memory[0], kAccesses);
  EXPECT_EQ(memory[ones.size() - 1], kAccesses);
}

// Without data at the origin nothing but the replies is on the way.
TEST_F(WindowService, ValuesThatAccumulatesReturnAreHeldAFewAtATime) {
  constexpr std::uint32_t kAccesses = 40;
  std::vector<ReplyHeader> replies(kAccesses);
  std::vector<Ref<ReceiveRequest>> answers;
  for (std::uint32_t i = 0; i < kAccesses; ++i) {
    AccessHeader header = access_header(AccessKind::kGetAccumulate, kWindowBytes, i);
    header.operation = static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(MPI_NO_OP));
    answers.push_back(receive(reply_tag(i), std::as_writable_bytes(std::span(&replies[i], 1))));
    request(header);
  }
  job_.settle();
  EXPECT_EQ(std::ranges::count_if(answers, [](const auto& one) { return one->is_complete(); }), 17)
      << "16 MiB, and the one that has exceeded them";
  std::vector<std::byte> got(kWindowBytes);
  for (std::uint32_t i = 0; i < kAccesses; ++i) job_.wait(receive(reply_tag(i), got), answers[i]);
}

TEST_F(WindowService, GetsOfMemoryWithGapsAreAnsweredAFewAtATime) {
  constexpr std::uint32_t kAccesses = 40;
  const WindowRun run{0, 8, kWindowBytes / 16, 16};
  std::vector<ReplyHeader> replies(kAccesses);
  std::vector<Ref<ReceiveRequest>> answers;
  for (std::uint32_t i = 0; i < kAccesses; ++i) {
    answers.push_back(receive(reply_tag(i), std::as_writable_bytes(std::span(&replies[i], 1))));
    request(access_header(AccessKind::kGet, kWindowBytes / 2, i), 0, run);
  }
  job_.settle();
  EXPECT_EQ(std::ranges::count_if(answers, [](const auto& one) { return one->is_complete(); }), 32);
  std::vector<std::byte> got(kWindowBytes / 2);
  for (std::uint32_t i = 0; i < kAccesses; ++i) job_.wait(receive(reply_tag(i), got), answers[i]);
}

}  // namespace
}  // namespace weft::mpi
