#include "models/pgas/team/team_table.h"

#include <numeric>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::pgas {

namespace {

TeamTable& table_of(void* context) { return *static_cast<TeamTable*>(context); }

}  // namespace

TeamTable::TeamTable(runtime::Runtime& runtime, runtime::HandlerId first_handler,
                     runtime::HandlerId call_handler)
    : runtime_(runtime), handlers_{first_handler, call_handler}, world_(&add_world()) {
  runtime_.set_handler(
      handlers_.part,
      [](void* self, runtime::MessagePtr message) { table_of(self).on_part(std::move(message)); }, this);
  runtime_.set_poster(
      handlers_.part,
      [](void* self, runtime::MessagePtr& message, std::span<runtime::ReceiveBuffer> receive_buffers) {
        return table_of(self).post_part(message, receive_buffers);
      },
      [](void* self, runtime::Message& message) { table_of(self).on_dropped(message); });
}

TeamState& TeamTable::add_world() {
  std::vector<int> pes(static_cast<std::size_t>(runtime_.num_pes()));
  std::iota(pes.begin(), pes.end(), 0);
  return add({}, std::move(pes));
}

TeamState& TeamTable::add(TeamId id, std::vector<int> pes) {
  auto made = std::make_unique<TeamState>(*this, runtime_, handlers_, id, std::move(pes));
  TeamState& team = *teams_.emplace(id, std::move(made)).first->second;
  auto waiting = waiting_.extract(id);
  if (!waiting.empty()) waiting.mapped().hand_on(runtime_);
  return team;
}

TeamState* TeamTable::find(TeamId id) {
  if (id == TeamId()) [[likely]]
    return world_.state();
  const auto found = teams_.find(id);
  return found == teams_.end() ? nullptr : found->second.get();
}

TeamState* TeamTable::find_or_wait(TeamId id, runtime::MessagePtr& message, bool from_poster) {
  const std::uint32_t source_pe = message->envelope().source_pe;
  TeamState* const team = find(id);
  if (team == nullptr) {
    if (!may_exist(id)) {
      base::refuse_claim(base::format("a message from PE {} names the team {} of PE {}, which cannot exist",
                                      source_pe, id.number, id.leader_pe));
    }
    if (from_poster) {
      waiting_[id].keep_deferred(std::move(message));
    } else {
      waiting_[id].keep(std::move(message));
    }
    return nullptr;
  }
  if (team->members.rank_of(static_cast<int>(source_pe)) < 0) {
    base::refuse_claim(base::format("a message from PE {} names a team of {} PEs, of which it is no member",
                                    source_pe, team->members.size()));
  }
  return team;
}

std::size_t TeamTable::num_waiting() const {
  std::size_t count = 0;
  for (const auto& [id, messages] : waiting_) count += messages.size();
  return count;
}

std::size_t TeamTable::num_waiting_for_objects() const {
  std::size_t count = 0;
  for (const auto& [id, team] : teams_) count += team->objects.num_waiting();
  return count;
}

// --- Messages

namespace {

int sender_rank(const TeamState& team, const runtime::Message& message) {
  return team.members.rank_of(static_cast<int>(message.envelope().source_pe));
}

}  // namespace

void TeamTable::on_part(runtime::MessagePtr message) {
  PartHeader header;
  message->unpacker() | header;
  TeamState* const team = find_or_wait(header.team, message);
  if (team == nullptr) return;
  const int from = sender_rank(*team, *message);
  team->exchange.arrive(from, header, std::move(message));
}

runtime::Posting TeamTable::post_part(runtime::MessagePtr& message,
                                      std::span<runtime::ReceiveBuffer> receive_buffers) {
  PartHeader header;
  message->unpacker() | header;
  TeamState* const team = find_or_wait(header.team, message, true);
  if (team == nullptr) return runtime::Posting::kDefer;
  return team->exchange.post(sender_rank(*team, *message), header, message, receive_buffers);
}

void TeamTable::on_dropped(runtime::Message& message) {
  PartHeader header;
  message.unpacker() | header;
  TeamState* const team = find(header.team);
  if (team != nullptr) team->exchange.dropped(sender_rank(*team, message), header);
}

}  // namespace weft::pgas
