#include "collective/group.h"

#include <cstring>
#include <utility>

#include "weft/runtime/direct_message.h"
#include "weft/runtime/message.h"

namespace weft::collective {

Group::Group(runtime::Messenger& messenger, runtime::HandlerId handler, InboxTable& inboxes,
             std::uint64_t number, std::vector<int> pes, int place)
    : messenger_(messenger),
      handler_(handler),
      inboxes_(inboxes),
      number_(number),
      pes_(std::move(pes)),
      place_(place),
      inbox_(inboxes.inbox(number, place)) {
  inbox_.group = this;
}

Group::~Group() {
  inbox_.group = nullptr;
  inboxes_.forget(number_, place_);
}

Plan& Group::plan(Kind kind, int root, std::size_t block_bytes, bool waits_first) {
  const int size_class = kind == Kind::kAlltoall ? size_class_of(block_bytes) : 0;
  for (const KeptPlan& kept : plans_)
    if (kept.kind == kind && kept.root == root && kept.waits_first == waits_first &&
        kept.size_class == size_class)
      return *kept.plan;
  auto plan = std::make_unique<Plan>(make_plan(kind, member(), root, block_bytes, waits_first));
  KeptPlan made{kind, waits_first, root, size_class, std::move(plan)};
  if (plans_.size() >= kMostPlans) {
    KeptPlan& oldest = plans_[next_plan_++ % plans_.size()];
    if (oldest.plan->num_users == 0) {
      oldest = std::move(made);
      return *oldest.plan;
    }
  }
  return *plans_.emplace_back(std::move(made)).plan;
}

void Group::send(std::uint64_t call, const Step& step, std::span<const std::byte> blocks, bool has_failed,
                 Sends& sends) {
  const StepHeader header{.group = number_,
                          .number = call,
                          .from = place_,
                          .to = step.peer,
                          .round = step.round,
                          .has_failed = has_failed ? 1U : 0U};
  const int pe = pes_[static_cast<std::size_t>(step.peer)];
  if (pe == messenger_.pe()) [[unlikely]] {
    // Not taken at once: members of a PE would call one another without end.
    inboxes_.inbox(number_, step.peer).keep(pe, header, blocks);
    return;
  }
  if (messenger_.send_direct(pe, handler_, header, blocks)) [[likely]]
    return;
  runtime::MessagePtr message = runtime::Message::create(messenger_, handler_, sizeof header + blocks.size());
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  std::memcpy(message->payload(), &header, sizeof header);
  if (!blocks.empty()) std::memcpy(message->payload() + sizeof header, blocks.data(), blocks.size());
  if (blocks.size() > kMostUnawaitedBytes) sends.push_back(message->share());
  messenger_.send(pe, std::move(message));
}

}  // namespace weft::collective
