#include "models/mpi/survival/survival.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/runtime/message.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "runtime/losses/losses.h"

namespace weft::mpi {

namespace {

// Communicators that peers may name before this process knows them.
constexpr std::size_t kMostUnknown = std::size_t{1} << 20;
// The agreement at the end of the job. No communicator makes so many.
constexpr std::uint32_t kLastAgreement = ~std::uint32_t{0};

[[noreturn, gnu::cold]] void refuse_survival(int pe, const char* what) {
  base::refuse_claim(base::format("a message of MPI about lost ranks from PE {} {}", pe, what),
                     "do all PEs run the same version of Weft?");
}

Survival& survival_of(void* context) { return *static_cast<Survival*>(context); }

Members all_members(const Communicator& communicator) {
  Members all(*communicator.group());
  if (communicator.is_inter())
    all.insert(all.end(), communicator.remote_group()->begin(), communicator.remote_group()->end());
  std::ranges::sort(all);
  return all;
}

std::size_t place_in(const Members& members, int rank) {
  return static_cast<std::size_t>(std::ranges::lower_bound(members, rank) - members.begin());
}

}  // namespace

Survival::Survival(runtime::Runtime& runtime, RankEngines& engines, runtime::HandlerId first_handler)
    : runtime_(runtime), engines_(engines), first_handler_(first_handler) {
  runtime.set_urgent_handler(
      first_handler + kRevoked,
      [](void* self, runtime::MessagePtr message) { survival_of(self).on_revoked(*message); }, this);
  runtime.set_urgent_handler(
      first_handler + kAgreement,
      [](void* self, runtime::MessagePtr message) { survival_of(self).on_agreement(*message); }, this);
  shared().troubles().pass_on_revocation = [this](std::uint64_t base, const Members& members) {
    pass_on(base, members);
  };
  runtime.losses().on_loss([this](int pe) { on_loss(pe); });
}

bool Survival::is_on() const { return runtime_.losses().are_survived(); }

void Survival::send_to(int rank, Handler handler, std::span<const std::byte> bytes) {
  runtime::MessagePtr message = runtime::Message::create(
      runtime_, static_cast<runtime::HandlerId>(first_handler_ + handler), bytes.size());
  std::memcpy(message->payload(), bytes.data(), bytes.size());
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  runtime_.send(shared().map().pe_of(rank), std::move(message));
}

std::vector<Ref<Communicator>> Survival::communicators() const {
  std::vector<Ref<Communicator>> all;
  for (const Communicator* const one : *shared().communicators())
    all.emplace_back(const_cast<Communicator&>(*one));
  return all;
}

// --- Losses

void Survival::on_loss(int pe) {
  for (const int rank : engines_.map().ranks_on(pe)) lose(rank, pe);
}

void Survival::lose(int rank, int pe) {
  if (!shared().troubles().lose(rank)) return;
  shared().close_window(pe);
  for (const Ref<Communicator>& one : communicators()) {
    if (!one->has_member(rank)) continue;
    refuse_what_cannot_survive(*one, rank, pe);
    one->lose(rank);
  }
  engine().lose(rank);
  agreements_.note_loss();
}

void Survival::refuse_what_cannot_survive(const Communicator& communicator, int rank, int pe) {
  const bool has_stream = communicator.stream_transfers != nullptr;
  if (!communicator.is_of_window() && !has_stream) return;
  runtime_.fail(
      base::format("{}: rank {} is lost, and it has part in a {}, which cannot survive that; free it before "
                   "ranks may be lost",
                   runtime_.losses().why(pe), rank, has_stream ? "communicator with streams" : "window"));
}

void Survival::acknowledge(Communicator& communicator, std::size_t count) {
  Troubles::Record* const record = communicator.trouble();
  if (record == nullptr) return;
  record->num_acknowledged = std::max(record->num_acknowledged, std::min(count, record->lost.size()));
  if (!record->has_unacknowledged())
    engine().acknowledged(context_of(communicator.context(), ContextUse::kMessages));
}

// --- Revocation
//
// Each rank passes the message on when it first hears of the revocation. So all living members hear of it if one of them does.

void Survival::revoke(Communicator& communicator) { revoke(communicator.context()); }

void Survival::revoke(std::uint64_t base) {
  Troubles& troubles = shared().troubles();
  if (troubles.is_revoked(base)) return;
  troubles.record(base).is_revoked = true;
  for (const Ref<Communicator>& one : communicators()) {
    if (one->context() != base) continue;
    one->revoke();
    pass_on(base, *one->group());
    if (one->is_inter()) pass_on(base, *one->remote_group());
  }
  engine().meet_troubles();
}

void Survival::pass_on(std::uint64_t base, const Members& members) {
  for (const int rank : members) {
    if (rank != engine().rank() && !is_lost(rank))
      send_to(rank, kRevoked, std::as_bytes(std::span(&base, 1)));
  }
}

void Survival::on_revoked(const runtime::Message& message) {
  std::uint64_t base = 0;
  const auto pe = static_cast<int>(message.envelope().source_pe);
  if (message.payload_bytes() != sizeof base) refuse_survival(pe, "has a wrong size");
  std::memcpy(&base, const_cast<runtime::Message&>(message).payload(), sizeof base);
  if (shared().troubles().num_records() > kMostUnknown) refuse_survival(pe, "is one of a million");
  revoke(base);
}

// --- Agreements

void Survival::enter(AgreementName name, Members members, AgreementGift gift, Agreement::Decided decided) {
  const auto place = static_cast<int>(place_in(members, engine().rank()));
  agreements_.enter(name, std::move(members), place, std::move(gift), std::move(decided));
}

void Survival::agree(Communicator& communicator, std::int32_t flag, Agreement::Decided decided) {
  const AgreementName name{communicator.context(), communicator.next_agreement()};
  Members members = all_members(communicator);
  AgreementGift gift{flag, PlaceSet(members.size()), PlaceSet(members.size())};
  if (const Troubles::Record* const record = communicator.trouble()) {
    for (std::size_t i = 0; i < record->lost.size(); ++i) {
      const std::size_t place = place_in(members, record->lost[i]);
      gift.lost.add(place);
      if (i < record->num_acknowledged) gift.acknowledged.add(place);
    }
  }
  enter(name, std::move(members), std::move(gift), std::move(decided));
}

void Survival::leave(const Communicator& communicator) {
  if (const std::uint32_t count = communicator.num_agreements(); count > 0)
    agreements_.leave({communicator.context(), count - 1});
}

void Survival::end_job() {
  Members members;
  for (int rank = 0; rank < engine().num_ranks(); ++rank) members.push_back(rank);
  AgreementGift gift{0, PlaceSet(members.size()), PlaceSet(members.size())};
  enter({kWorldContext, kLastAgreement}, std::move(members), std::move(gift),
        [this](const AgreementResult&) { runtime_.exit(0); });
}

void Survival::on_agreement(const runtime::Message& message) {
  const auto pe = static_cast<int>(message.envelope().source_pe);
  const std::span<const std::byte> bytes(const_cast<runtime::Message&>(message).payload(),
                                         message.payload_bytes());
  if (pe < 0 || pe >= runtime_.num_pes()) refuse_survival(pe, "names its sender wrongly");
  agreements_.arrive(engines_.map().ranks_on(pe).front(), bytes);
}

Ref<Communicator> Survival::shrunk(const Communicator& parent, const AgreementResult& result) {
  const Members all = all_members(parent);
  const auto living = [&](const Members& members) {
    auto chosen = std::make_shared<Members>();
    std::ranges::copy_if(members, std::back_inserter(*chosen),
                         [&](int rank) { return !result.lost.has(place_in(all, rank)); });
    return chosen;
  };
  Communicator::Groups groups;
  groups.local = living(*parent.group());
  const int own = parent.engine().rank();
  groups.rank = static_cast<int>(std::ranges::find(*groups.local, own) - groups.local->begin());
  std::uint64_t local_context = 0;
  if (parent.is_inter()) {
    groups.remote = living(*parent.remote_group());
    if (groups.remote->empty()) return nullptr;
    local_context = result.contexts[groups.local->front() < groups.remote->front() ? 1 : 2];
  }
  auto made = Ref<Communicator>::adopt(new Communicator(
      parent.engine(), result.contexts[0], std::move(groups), local_context, parent.error_handler()));
  made->session_space = parent.session_space;
  return made;
}

}  // namespace weft::mpi
