#include "collective/group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/runtime/direct_message.h"
#include "weft/runtime/message.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::collective {

namespace {

bool has_outside(const Group::Shared& shared, std::span<const int> pes) {
  return std::ranges::any_of(pes, [&](int pe) { return shared.is_outside(pe); });
}

// Null if hosts make no difference between the members.
std::shared_ptr<const runtime::HostGroups> hosts_of(const Group::Shared& shared, std::span<const int> pes) {
  if (shared.is_on_one_host || has_outside(shared, pes)) return nullptr;
  std::vector<int> hosts;
  for (const int pe : pes) hosts.push_back(shared.host_of(pe));
  return runtime::HostGroups::make(hosts);
}

// `hosts`: hosts_of() the members. If it is null, the last member is on the host of the first one only if all are.
Spread spread_of(const Group::Shared& shared, std::span<const int> pes, const runtime::HostGroups* hosts) {
  if (hosts != nullptr) return Spread::kSharedHosts;
  // Members of several jobs make the same plans, and none knows the hosts of all.
  if (has_outside(shared, pes)) return Spread::kOwnHosts;
  return shared.host_of(pes.front()) == shared.host_of(pes.back()) ? Spread::kOneHost : Spread::kOwnHosts;
}

}  // namespace

Group::Group(Shared& shared, std::uint64_t number, std::vector<int> pes, int place)
    : shared_(shared),
      number_(number),
      pes_(std::move(pes)),
      place_(place),
      hosts_(hosts_of(shared, pes_)),
      spread_(spread_of(shared, pes_, hosts_.get())),
      inbox_(shared.inboxes.inbox(number, place)) {
  inbox_.group = this;
}

Group::~Group() {
  inbox_.group = nullptr;
  shared_.inboxes.forget(number_, place_);
}

Plan& Group::plan(const PlanChoice& choice) {
  for (const KeptPlan& kept : plans_)
    if (kept.choice == choice) return *kept.plan;
  KeptPlan made{choice, std::make_unique<Plan>(has_ended_ ? plan_of_ended()
                                                          : make_plan(choice, member(), hosts_.get()))};
  if (plans_.size() >= kMostPlans) {
    KeptPlan& oldest = plans_[next_plan_++ % plans_.size()];
    if (oldest.plan->num_users == 0) {
      oldest = std::move(made);
      return *oldest.plan;
    }
  }
  return *plans_.emplace_back(std::move(made)).plan;
}

bool Group::post(int pe, std::span<const std::byte> blocks, Sent& sent) {
  if (!shared_.boards.posts_for(pe)) return false;
  if (sent.data == blocks.data() && sent.posted.size_bytes == blocks.size()) {
    shared_.boards.add_reader(sent.posted);
    return true;
  }
  const std::optional<BoardReference> posted = shared_.boards.post(blocks);
  sent.data = posted ? blocks.data() : nullptr;
  if (posted) sent.posted = *posted;
  return posted.has_value();
}

void Group::send(std::uint64_t call, const Step& step, std::span<const std::byte> blocks, std::uint32_t flags,
                 Sent& sent) {
  StepHeader header{
      .group = number_, .number = call, .from = place_, .to = step.peer, .round = step.round, .flags = flags};
  const int pe = pe_of(step.peer);
  if (blocks.size() <= Boards::kMostSentBytes || !post(pe, blocks, sent))
    return send_bytes(pe, header, blocks, sent);
  header.flags |= StepHeader::kPosted;
  try {
    send_bytes(pe, header, std::as_bytes(std::span(&sent.posted, 1)), sent);
  } catch (...) {
    shared_.boards.take_back(sent.posted);
    sent.data = nullptr;
    throw;
  }
}

void Group::send_bytes(int pe, const StepHeader& header, std::span<const std::byte> bytes, Sent& sent) {
  if (pe == shared_.messenger.pe()) [[unlikely]] {
    // Not taken at once: members of a PE would call one another without end.
    return shared_.inboxes.inbox(number_, header.to).keep(pe, header, bytes);
  }
  send_message(shared_, pe, header, bytes, sent.awaited);
}

void Group::send_message(Shared& shared, int pe, const StepHeader& header, std::span<const std::byte> payload,
                         std::vector<runtime::MessagePtr>& awaited) {
  if (shared.is_outside(pe)) [[unlikely]]
    return shared.outside->send_step(pe, std::as_bytes(std::span(&header, 1)), payload);
  shared.messenger.count_sent();  // for quiescence; Engine::arrive() counts it there
  if (shared.messenger.send_direct(pe, shared.handler, header, payload)) [[likely]]
    return;
  runtime::MessagePtr message =
      runtime::Message::create(shared.messenger, shared.handler, sizeof header + payload.size());
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  std::memcpy(message->payload(), &header, sizeof header);
  if (!payload.empty()) std::memcpy(message->payload() + sizeof header, payload.data(), payload.size());
  if (payload.size() > kMostUnawaitedBytes) awaited.push_back(message->share());
  shared.messenger.send(pe, std::move(message));
}

namespace {

// REQUIRES: check_reference().
BoardReference reference_in(std::span<const std::byte> payload) {
  BoardReference reference;
  std::memcpy(&reference, payload.data(), sizeof reference);
  return reference;
}

}  // namespace

void Group::check_reference(int pe, std::span<const std::byte> payload) {
  if (payload.size() != sizeof(BoardReference) || !Boards::is_inside(reference_in(payload))) [[unlikely]]
    base::refuse_claim(
        base::format("a message of a collective from PE {} has no reference to a block of a board", pe));
}

bool Group::forget_sent() const {
  std::erase_if(shared_.sent_again, [](const runtime::MessagePtr& one) { return !one->is_shared(); });
  return shared_.sent_again.empty();
}

std::optional<Boards::Block> Group::open(const StepHeader& header, std::span<const std::byte> payload) const {
  return open_from(shared_, pe_of(header.from), header, payload);
}

std::optional<Boards::Block> Group::open_from(Shared& shared, int pe, const StepHeader& header,
                                              std::span<const std::byte> payload) {
  std::optional<Boards::Block> block = shared.boards.read(pe, reference_in(payload));
  if (!block) [[unlikely]] {
    StepHeader refusal = header;
    refusal.flags = (header.flags & StepHeader::kMarks) | StepHeader::kRefused;
    send_message(shared, pe, refusal, payload, shared.sent_again);
  }
  return block;
}

void Group::drop(Shared& shared, int pe, const StepHeader& header, std::span<const std::byte> payload) {
  if ((header.flags & StepHeader::kPosted) == 0) return;
  if (const std::optional<Boards::Block> block = open_from(shared, pe, header, payload)) block->release();
}

void Group::drop_all() {
  inbox_.drop_all().for_all([this](const KeptMessage& kept) {
    drop(shared_, kept.source_pe, kept.header, {kept.blocks.data(), kept.blocks.size()});
  });
}

void Group::end_all() {
  constexpr int kNoRoot = -1;
  has_ended_ = true;
  std::erase_if(plans_, [](const KeptPlan& kept) { return kept.plan->num_users == 0; });
  for (KeptPlan& kept : plans_) kept.choice.root = kNoRoot;  // of calls that end now
  const std::span<Awaiting* const> calls = inbox_.calls();
  for (Awaiting* const call : std::vector<Awaiting*>(calls.begin(), calls.end())) call->end_with_group();
  drop_all();
}

void Group::send_again(Shared& shared, int pe, StepHeader header, std::span<const std::byte> payload) {
  const Boards::Block block = shared.boards.refused_by(pe, reference_in(payload));
  header.flags &= StepHeader::kMarks;
  send_message(shared, pe, header, block.bytes, shared.sent_again);
  block.release();
}

}  // namespace weft::collective
