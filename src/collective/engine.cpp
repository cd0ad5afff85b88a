#include "collective/engine.h"

#include <algorithm>
#include <cstring>

#include "weft/runtime/message.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "collective/run.h"
#include "runtime/losses/losses.h"

namespace weft::collective {

namespace {

// A peer that is ahead sends no more than that for each of its members, see InboxTable.
constexpr std::size_t kMostKept = std::size_t{1} << 20;

[[noreturn, gnu::cold, gnu::noinline]] void refuse_step(int source_pe, const char* what) {
  base::refuse_claim(base::format("a message of a collective from PE {} {}", source_pe, what));
}

}  // namespace

Engine::Engine(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : shared_{.messenger = runtime,
              .handler = range.first_handler,
              .is_on_one_host = runtime.is_on_one_host(),
              .inboxes = {},
              .boards = Boards(runtime.num_pes()),
              .sent_again = {}} {
  for (int pe = 0; pe < runtime.num_pes(); ++pe)
    if (shared_.host_of(pe) != shared_.host_of(runtime.pe())) shared_.boards.post_none_for(pe);
  runtime.losses().on_loss([this](int pe) { shared_.boards.lose(pe); });
  runtime.set_urgent_handler(
      shared_.handler,
      [](void* self, runtime::MessagePtr message) {
        const std::span<const std::byte> payload = message->payload_span();
        const std::size_t header_bytes = std::min(payload.size(), sizeof(StepHeader));
        static_cast<Engine*>(self)->arrive(static_cast<int>(message->envelope().source_pe),
                                           payload.first(header_bytes), payload.subspan(header_bytes));
      },
      this);
  runtime.set_direct_handler(shared_.handler, [](void* self, const runtime::DirectArrival& arrival) {
    return static_cast<Engine*>(self)->arrive(arrival.source_pe, arrival.header, arrival.payload);
  });
}

std::shared_ptr<Group> Engine::group(std::uint64_t number, const std::vector<int>& pes, int place) {
  if (Group* const known = shared_.inboxes.inbox(number, place).group) return known->shared_from_this();
  return std::make_shared<Group>(shared_, number, pes, place);
}

void Engine::for_each_waiting(const std::function<void(const Group&, const Run&)>& visit) const {
  shared_.inboxes.for_each([&](const Inbox& inbox) {
    for (const Awaiting* const call : inbox.calls()) {
      const Run* const run = call->as_run();
      if (inbox.group != nullptr && run != nullptr && run->awaited_place()) visit(*inbox.group, *run);
    }
  });
}

void Engine::list_waits(runtime::WaitList& waits) const {
  const auto main_of = [](int pe) {
    return runtime::NamedParty{{runtime::Party::kMains, static_cast<std::uint64_t>(pe)},
                               base::format("main on PE {}", pe)};
  };
  for_each_waiting([&](const Group& group, const Run& run) {
    if (group.owner() != Owner::kTeam) return;
    const int pe = group.pe_of(*run.awaited_place());
    waits.add(
        {.who = main_of(shared_.messenger.pe()),
         .what = base::format("{} of a team, in which PE {} has not taken its part", name_of(run.kind()), pe),
         .on = {main_of(pe)}});
  });
}

bool Engine::arrive(int source_pe, std::span<const std::byte> bytes, std::span<const std::byte> blocks) {
  shared_.messenger.count_processed();
  StepHeader header;
  if (bytes.size() != sizeof header) [[unlikely]]
    refuse_step(source_pe, "is shorter than its header, or longer");
  std::memcpy(&header, bytes.data(), sizeof header);
  if ((header.flags & (StepHeader::kPosted | StepHeader::kRefused)) != 0) [[unlikely]]
    Group::check_reference(source_pe, blocks);
  if ((header.flags & StepHeader::kRefused) != 0) [[unlikely]] {
    Group::send_again(shared_, source_pe, header, blocks);
    return false;
  }
  return take(source_pe, header, blocks);
}

void Engine::arrive_from_outside(int number, std::span<const std::byte> message) {
  StepHeader header;
  if (message.size() < sizeof header) refuse_step(number, "is shorter than its header");
  std::memcpy(&header, message.data(), sizeof header);
  if ((header.flags & (StepHeader::kPosted | StepHeader::kRefused)) != 0)
    refuse_step(number, "refers to a board of another job");
  take(number, header, message.subspan(sizeof header));
}

inline bool Engine::take(int source_pe, const StepHeader& header, std::span<const std::byte> blocks) {
  Inbox& inbox = shared_.inboxes.inbox(header.group, header.to);
  if (const Group* const group = inbox.group; group != nullptr && !group->is_member(header.from, source_pe))
      [[unlikely]]
    refuse_step(source_pe, "names a sender that is not there");
  if ((header.flags & StepHeader::kQuestion) != 0) [[unlikely]] {
    if (inbox.number_check != nullptr) inbox.number_check->check(header.from, header.number);
    return false;
  }
  if (inbox.drops_all()) [[unlikely]] {
    Group::drop(shared_, source_pe, header, blocks);
    return false;
  }
  if (inbox.num_kept() > kMostKept) [[unlikely]]
    refuse_step(source_pe, "is one of a million that no call awaits");
  return inbox.arrive(source_pe, header, blocks);
}

}  // namespace weft::collective
