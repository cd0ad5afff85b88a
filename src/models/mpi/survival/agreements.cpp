#include "models/mpi/survival/agreements.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::mpi {

namespace {

// Agreements that peers may name before this process knows them.
constexpr std::size_t kMostUnknownAgreements = std::size_t{1} << 20;

}  // namespace

Agreement* Agreements::find(AgreementName name) {
  const auto first = first_kept_.find(name.context);
  if (first != first_kept_.end() && name.number < first->second) return nullptr;
  std::unique_ptr<Agreement>& found = agreements_[name];
  if (found == nullptr) found = std::make_unique<Agreement>(name, way_);
  return found.get();
}

void Agreements::enter(AgreementName name, Members members, int place, AgreementGift gift,
                       Agreement::Decided decided) {
  std::deque<Call>& calls = calls_[name.context];
  calls.push_back({name, std::move(members), place, std::move(gift), std::move(decided)});
  if (calls.size() == 1) begin(calls.front());
}

void Agreements::begin(Call& call) {
  find(call.name)->enter(
      std::move(call.members), call.place, std::move(call.gift),
      [this, name = call.name, decided = std::move(call.decided)](const AgreementResult& result) {
        decided(result);
        end_call(name);
      });
}

void Agreements::end_call(AgreementName name) {
  if (name.number > 0) {
    first_kept_[name.context] = name.number;
    agreements_.erase(agreements_.lower_bound({name.context, 0}), agreements_.lower_bound(name));
  }
  const auto calls = calls_.find(name.context);
  calls->second.pop_front();
  if (!calls->second.empty()) return next_calls_.push_back(name.context);
  calls_.erase(calls);
  if (freed_.erase(name.context) > 0) next_left_.push_back(name);
}

void Agreements::do_next_steps() {
  while (!next_calls_.empty()) {
    const std::uint64_t context = next_calls_.back();
    next_calls_.pop_back();
    begin(calls_.at(context).front());
  }
  while (!next_left_.empty()) {
    const AgreementName name = next_left_.back();
    next_left_.pop_back();
    agreements_.at(name)->leave();
    forget_if_over(name);
  }
}

void Agreements::leave(AgreementName last) {
  if (calls_.contains(last.context)) {
    freed_.insert(last.context);
    return;
  }
  next_left_.push_back(last);
  do_next_steps();
}

void Agreements::forget_if_over(AgreementName name) {
  const auto found = agreements_.find(name);
  if (found == agreements_.end() || !found->second->is_over()) return;
  agreements_.erase(found);
  first_kept_.erase(name.context);
}

void Agreements::arrive(int from, std::span<const std::byte> message) {
  AgreementName name;
  constexpr std::size_t kNameBytes = sizeof name.context + sizeof name.number;
  if (message.size() < kNameBytes || agreements_.size() > kMostUnknownAgreements) {
    base::refuse_claim(
        base::format("a message of an agreement from rank {} {}", from,
                     message.size() < kNameBytes ? "has no name" : "is about one of a million"),
        "do all PEs run the same version of Weft?");
  }
  std::memcpy(&name.context, message.data(), sizeof name.context);
  std::memcpy(&name.number, message.data() + sizeof name.context, sizeof name.number);
  // The living do without the messages of a lost member, which may come when the agreement is forgotten here.
  if (way_.is_lost(from)) return;
  if (Agreement* const found = find(name)) found->arrive(from, message.subspan(kNameBytes));
  forget_if_over(name);
  do_next_steps();
}

void Agreements::note_loss() {
  std::vector<AgreementName> names;
  for (const auto& [name, one] : agreements_) names.push_back(name);
  for (const AgreementName& name : names) {
    const auto found = agreements_.find(name);
    if (found != agreements_.end()) found->second->note_loss();
    forget_if_over(name);
  }
  do_next_steps();
}

}  // namespace weft::mpi
