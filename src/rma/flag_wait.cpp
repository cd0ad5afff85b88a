#include "rma/flag_wait.h"

#include <new>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "memory/memory.h"

namespace weft::rma {

using base::Error;
using base::Status;
using base::StatusCode;

namespace {

// In the extra bytes of the operation's state.
struct FlagWait {
  KnownSegment* segment;
  GlobalAddress address;
  std::uint32_t value;
};

std::string flag_wait_text(const GlobalAddress& address, std::uint32_t value) {
  return base::format("a wait until {} is at least {}", describe(address), value);
}

void flag_wait_ended(runtime::OperationState* state, void* segments) {
  const FlagWait wait = *reinterpret_cast<const FlagWait*>(state->extra());
  if (state->status().failed()) {
    state->set_outcome(
        Status(state->status().code(), base::format("{} failed: {}", flag_wait_text(wait.address, wait.value),
                                                    state->status().message())),
        0);
  }
  if (wait.segment->end_use()) static_cast<Segments*>(segments)->reclaim_if_unused(*wait.segment);
}

[[noreturn]] void refuse_flag(const GlobalAddress& address, std::uint32_t value, const std::string& why) {
  throw Error(StatusCode::kInvalidArgument,
              base::format("{} cannot begin: {}", flag_wait_text(address, value), why));
}

}  // namespace

std::string describe_flag_wait(const runtime::OperationState& operation) {
  if (operation.finisher() != &flag_wait_ended) return {};
  const auto& wait = *reinterpret_cast<const FlagWait*>(operation.extra());
  return flag_wait_text(wait.address, wait.value);
}

runtime::OperationState* start_flag_wait(runtime::Runtime& runtime, Segments& segments,
                                         const GlobalAddress& address, std::uint32_t value) {
  KnownSegment* const segment = segments.find_inside(address, sizeof value);
  if (address.pe() != runtime.pe()) {
    refuse_flag(address, value,
                base::format("PE {} polls words of its own segments alone: keep the word in a segment of the "
                             "PE that waits, and signal there",
                             runtime.pe()));
  }
  const memory::Buffer memory = segment->part(address, sizeof value);
  if (reinterpret_cast<std::uintptr_t>(memory.data) % sizeof value != 0)
    refuse_flag(address, value, "the address of a word is a multiple of 4");
  auto* const state = runtime::OperationState::create(runtime, sizeof(FlagWait));
  // No completion is called inside the start, so the use begins in time.
  Status started = runtime.memory().when_word_reached(static_cast<const std::uint32_t*>(memory.data),
                                                      memory.place, value, state->completion());
  segment->begin_use();
  new (state->extra()) FlagWait{segment, address, value};
  state->set_finisher(&flag_wait_ended, &segments);
  state->started(std::move(started), 0);
  return state;
}

}  // namespace weft::rma
