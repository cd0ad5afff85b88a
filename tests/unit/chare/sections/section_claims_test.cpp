// Messages of sections that a peer makes up.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "models/chare/elements/parts.h"
#include "models/chare/sections/section_state.h"
#include "tests/support/errors.h"
#include "tests/unit/chare/chare_handler.h"
#include "tests/unit/chare/sections/section_cell.h"

namespace weft::chare::section_testing {
namespace {

using test_support::says;

// Sends a message to PE 1, which counts or which has the members.
std::string failure_of(const std::function<runtime::MessagePtr(Runtime&, const Array<Cell>&)>& make) {
  testing::InProcessJob job(2, "loopback");
  return job.run([&](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {12});
    co_await cells.created();
    runtime.send(1, make(runtime, cells));
    co_await runtime.quiescence();
    co_await runtime.sleep(0);
  });
}

TEST(Section, PartsOfReductionsThatDoNotFitEndTheJobWithASentence) {
  for (int wrong = 0; wrong < 8; ++wrong) {
    SCOPED_TRACE(wrong);
    const std::string failure = failure_of([wrong](Runtime& runtime, const Array<Cell>& cells) {
      const std::uint64_t collection = wrong == 0 ? std::uint64_t{2} << 32 : cells.collection().id();
      SectionPart part{{collection, {7, 1 - collection}, 0}, 4, 0, {}};  // PE 1 counts
      runtime::Partial partial;
      const int one = 1;
      Future<int> target(runtime);
      partial.add_contribution(runtime, 0, Reducer::kSum, runtime::value_combiner<int>(Reducer::kSum),
                               runtime::pack_contribution(one, Reducer::kSum, runtime), target_of(target));
      if (wrong == 1) part.key.set = ~std::uint32_t{0};
      if (wrong == 2) part.key.section.low += 1;  // PE 0 counts
      if (wrong == 3) partial.has_target = false;
      if (wrong == 4) partial.count = 0;
      if (wrong == 5) partial.count = 5;
      if (wrong == 6) part.num_members = 0;
      if (wrong == 7) return runtime::Message::pack(runtime, handler_of(runtime, kSectionPart), part);
      return runtime::Message::pack(runtime, handler_of(runtime, kSectionPart), part, partial);
    });
    EXPECT_TRUE(says(failure, wrong == 7 ? "ends too early" : "does not fit"));
  }
}

TEST(Section, TargetsThatDoNotFitEndTheJobWithASentence) {
  for (int wrong = 0; wrong < 3; ++wrong) {
    SCOPED_TRACE(wrong);
    const std::string failure = failure_of([wrong](Runtime& runtime, const Array<Cell>& cells) {
      EntryHeader header{cells.collection().id(), 0, EntryMethod<Cell, &Cell::take>::info().id, 0, {}};
      if (wrong == 0) header.reply = {ReplyTo::Kind::kFuture, 0, 1};
      // A list of members, one of which does not exist, and one without an end.
      const std::vector<std::uint64_t> members = {7, wrong == 1 ? std::uint64_t{12} : std::uint64_t{8}};
      if (wrong == 2)
        return runtime::Message::pack(runtime, handler_of(runtime, kSectionTarget), header, true,
                                      ~std::uint64_t{0});
      return runtime::Message::pack(runtime, handler_of(runtime, kSectionTarget), header, true, members, 7,
                                    8);
    });
    EXPECT_NE(failure, "");
    EXPECT_TRUE(says(failure, wrong == 0 ? "does not fit" : "a message")) << failure;
  }
}

// The PE of the members has heard of the end, the caller has not.
TEST(Section, ACallThatOvertakesTheEndAtItsCallerIsRefused) {
  testing::InProcessJob job(2, "loopback");
  const std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {12});
    co_await cells.destroy();
    const EntryHeader header{cells.collection().id(), 2, EntryMethod<Cell, &Cell::get>::info().id, 0, {}};
    const std::uint64_t members[4] = {7, 0, 8, 0};
    auto message =
        runtime::Message::create(runtime, handler_of(runtime, kSectionCall), sizeof header + sizeof members);
    std::memcpy(message->payload(), &header, sizeof header);
    std::memcpy(message->payload() + sizeof header, members, sizeof members);
    runtime.send(1, std::move(message));
    co_await runtime.quiescence();
    co_await runtime.sleep(0);
  });
  EXPECT_TRUE(says(failure, "comes too late")) << failure;
}

TEST(Section, MessagesThatDoNotFitEndTheJobWithASentence) {
  const std::uint64_t kWrong = ~std::uint64_t{0};
  for (int wrong = 0; wrong < 5; ++wrong) {
    SCOPED_TRACE(wrong);
    testing::InProcessJob job(2, "loopback");
    const std::string failure = job.run([&](Runtime& runtime) -> Task<> {
      const auto cells = Array<Cell>::create(runtime, {12});
      co_await cells.created();
      const runtime::HandlerId handler = handler_of(runtime, kSectionCall);
      EntryHeader header{cells.collection().id(), 2, EntryMethod<Cell, &Cell::get>::info().id, 0, {}};
      std::uint64_t members[4] = {7, 0, 8, 0};
      if (wrong == 0) header.index = 0;
      if (wrong == 1) header.index = 3;
      if (wrong == 2) header.index = kWrong;
      if (wrong == 3) members[2] = 12;
      if (wrong == 4) header.entry = 1'000'000;
      auto message = runtime::Message::create(runtime, handler, sizeof header + sizeof members);
      std::memcpy(message->payload(), &header, sizeof header);
      std::memcpy(message->payload() + sizeof header, members, sizeof members);
      runtime.send(1, std::move(message));
      co_await runtime.quiescence();
      co_await runtime.sleep(0);
    });
    EXPECT_TRUE(says(failure, "does not fit that collection"));
  }
}

}  // namespace
}  // namespace weft::chare::section_testing
