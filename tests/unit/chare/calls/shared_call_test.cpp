// Calls to several elements of a PE, between which an entry method of a language keeps what it has unpacked.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "weft/chare/section.h"
#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

struct Sharer : Chare<Sharer> {};

// On all PEs of the test's job.
std::vector<int> shared_by;  // of each kept object, when it was destroyed: how many elements had it
int num_alone = 0;

struct Unpacked final : SharedCall {
  ~Unpacked() override { shared_by.push_back(num_elements); }
  int num_elements = 1;
};

using SharedNumbers = std::array<int, 5>;
constexpr SharedNumbers kArguments{7, 6, 5, 4, 3};

SharedNumbers unpack_arguments(Pup& p) {
  SharedNumbers numbers{};
  p | numbers;
  return numbers;
}

void invoke_alone(ChareBase&, Pup& p, const ReplyTo&) {
  EXPECT_EQ(unpack_arguments(p), kArguments);
  ++num_alone;
}

void invoke_together(ChareBase&, Pup& p, const ReplyTo&, std::unique_ptr<SharedCall>& shared) {
  EXPECT_EQ(unpack_arguments(p), kArguments);
  if (shared == nullptr) {
    shared = std::make_unique<Unpacked>();
  } else {
    ++static_cast<Unpacked&>(*shared).num_elements;
  }
}

EntryInfo shared_entry{
    "Sharer.method", &ChareTypeOf<Sharer>::info, &invoke_alone, 0, nullptr, nullptr, false, nullptr, nullptr,
    &invoke_together};
const bool shared_entry_registered = runtime::Registry<EntryInfo>::add(&shared_entry);

template <class Make>
runtime::MessagePtr make_shared_call(Make make, const Collection& to) {
  runtime::MessagePtr message = make(EntryHeader{to.id(), 0, shared_entry.id, 0, {}}, sizeof kArguments);
  Pup::packer(message->payload() + sizeof(EntryHeader), sizeof kArguments) | kArguments;
  return message;
}

class SharedCalls : public ::testing::TestWithParam<int> {
 protected:
  SharedCalls() {
    EXPECT_TRUE(shared_entry_registered);
    shared_by.clear();
    num_alone = 0;
  }
  static void broadcast(Collection& to) {
    Chares& chares = to.chares();
    chares.broadcast_entry(
        to, make_shared_call([&](const EntryHeader& header,
                                 std::size_t size) { return chares.make_broadcast_message(header, size); },
                             to));
  }
};

TEST_P(SharedCalls, TheElementsOfAPeShareOneObject) {
  const int num_pes = GetParam();
  testing::InProcessJob job(num_pes);
  EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
    const auto all = Array<Sharer>::create(runtime, {6});
    for (int round = 0; round < 2; ++round) {
      shared_by.clear();
      broadcast(all.collection());
      co_await runtime.quiescence();
      EXPECT_EQ(shared_by, std::vector<int>(static_cast<std::size_t>(num_pes), 6 / num_pes));
      EXPECT_EQ(num_alone, 0);
    }
  }),
            "");
}

TEST_P(SharedCalls, AnElementThatIsAloneOnItsPeSharesNothing) {
  const int num_pes = GetParam();
  testing::InProcessJob job(num_pes);
  EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
    const auto group = Group<Sharer>::create(runtime);
    broadcast(group.collection());
    co_await runtime.quiescence();
    EXPECT_TRUE(shared_by.empty());
    EXPECT_EQ(num_alone, num_pes);
  }),
            "");
}

TEST_P(SharedCalls, SoDoTheMembersOfASection) {
  const int num_pes = GetParam();
  testing::InProcessJob job(num_pes);
  EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
    const auto all = Array<Sharer>::create(runtime, {6});
    const auto some = all.section({{0}, {1}, {5}});
    Chares& chares = all.collection().chares();
    chares.sections().send(
        all.collection(), some.members(), {},
        make_shared_call([&](const EntryHeader& header,
                             std::size_t size) { return chares.make_entry_message(header, size); },
                         all.collection()));
    co_await runtime.quiescence();
    EXPECT_EQ(shared_by, std::vector<int>{num_pes == 1 ? 3 : 2});
    EXPECT_EQ(num_alone, num_pes == 1 ? 0 : 1);
  }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Pes, SharedCalls, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace weft::chare
