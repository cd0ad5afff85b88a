#include "models/mpi/survival/agreement.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::mpi {

namespace {

[[noreturn, gnu::cold]] void refuse_agreement(int from, const char* what) {
  base::refuse_claim(base::format("a message of an agreement from rank {} {}", from, what),
                     "do all PEs run the same version of Weft?");
}

class Writer {
 public:
  explicit Writer(const AgreementName& name) { put(name.context).put(name.number); }
  template <class T>
  Writer& put(const T& value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  Writer& put(const PlaceSet& set) {
    for (const std::uint64_t word : set.words()) put(word);
    return *this;
  }
  Writer& put(const AgreementResult& result) {
    return put(result.flag)
        .put(std::int32_t{result.has_unacknowledged})
        .put(result.contexts)
        .put(result.lost);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Throws if the message ends too early, or too late.
class Reader {
 public:
  Reader(int from, std::span<const std::byte> bytes, std::size_t num_members)
      : from_(from), bytes_(bytes), num_members_(num_members) {}
  template <class T>
  T get() {
    T value;
    if (bytes_.size() < sizeof value) refuse_agreement(from_, "is too short");
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  PlaceSet set() {
    PlaceSet set(num_members_);
    for (std::uint64_t& word : set.words()) word = get<std::uint64_t>();
    return set;
  }
  AgreementResult result() {
    AgreementResult result;
    result.flag = get<std::int32_t>();
    result.has_unacknowledged = get<std::int32_t>() != 0;
    result.contexts = get<decltype(result.contexts)>();
    result.lost = set();
    return result;
  }
  void end() const {
    if (!bytes_.empty()) refuse_agreement(from_, "is too long");
  }

 private:
  int from_;
  std::span<const std::byte> bytes_;
  std::size_t num_members_;
};

}  // namespace

void Agreement::enter(Members members, int place, AgreementGift gift, Decided decided) {
  members_ = std::move(members);
  place_ = place;
  gift_ = std::move(gift);
  decided_ = std::move(decided);
  has_accepted_.resize(members_.size());
  have_left_.resize(members_.size());
  for (const auto& [from, message] : std::exchange(early_, {})) take(place_of(from), message);
  advance();
}

void Agreement::leave() {
  has_left_ = true;
  told_ = coordinator();
  if (told_ == place_) return end_if_all_left();
  send(told_, Type::kLeft, &*decision_);
}

void Agreement::arrive(int from, std::span<const std::byte> message) {
  if (has_entered()) {
    take(place_of(from), message);
    return advance();
  }
  // A member says so when it has decided, and then this process has entered. So the agreement was over here, and is forgotten.
  const auto type = Reader(from, message, 0).get<Type>();
  if (type == Type::kLeft || type == Type::kOver) {
    is_over_ = true;
    if (type == Type::kLeft) way_.send(from, Writer(name_).put(Type::kOver).take());
    return;
  }
  // The coordinators before this process may have asked as well: one message each.
  constexpr std::size_t kMostEarly = 1U << 20;
  if (early_.size() > kMostEarly) refuse_agreement(from, "is one of a million that came before the call");
  early_.emplace_back(from, std::vector<std::byte>(message.begin(), message.end()));
}

int Agreement::place_of(int rank) const {
  const auto found = std::ranges::lower_bound(members_, rank);
  if (found == members_.end() || *found != rank)
    refuse_agreement(rank, "is for a communicator without that rank");
  return static_cast<int>(found - members_.begin());
}

void Agreement::take(int place, std::span<const std::byte> message) {
  const int from = members_[static_cast<std::size_t>(place)];
  Reader reader(from, message, members_.size());
  switch (reader.get<Type>()) {
    case Type::kGift: {
      Given given;
      given.gift.flag = reader.get<std::int32_t>();
      given.gift.acknowledged = reader.set();
      given.gift.lost = reader.set();
      if (const auto coordinator = reader.get<std::int32_t>(); coordinator >= 0)
        given.accepted = Proposal{coordinator, reader.result()};
      reader.end();
      given_[place] = std::move(given);
      // The coordinator before has told this process, and not that one.
      if (decision_) send(place, Type::kDecision, &*decision_);
      break;
    }
    case Type::kProposal: {
      AgreementResult result = reader.result();
      reader.end();
      // That of a coordinator whose loss is known here is too late: the next one has been told already what this process has accepted.
      if (decision_) {
        send(place, Type::kDecision, &*decision_);
        break;
      }
      if (place != told_) break;
      accepted_ = Proposal{place, std::move(result)};
      send(place, Type::kAcceptance, nullptr);
      break;
    }
    case Type::kAcceptance:
      reader.end();
      has_accepted_[static_cast<std::size_t>(place)] = true;
      break;
    case Type::kDecision: {
      const AgreementResult result = reader.result();
      reader.end();
      decide(result);
      break;
    }
    case Type::kLeft: {
      const AgreementResult result = reader.result();
      reader.end();
      have_left_[static_cast<std::size_t>(place)] = true;
      decide(result);
      break;
    }
    case Type::kOver:
      reader.end();
      if (!has_left_) refuse_agreement(from, "says that all have left, and this process has not");
      is_over_ = true;
      // They take this process for the coordinator.
      for (int other = 0; other < static_cast<int>(members_.size()); ++other)
        if (have_left_[static_cast<std::size_t>(other)]) send(other, Type::kOver, nullptr);
      break;
    default:
      refuse_agreement(from, "has an unknown type");
  }
}

int Agreement::coordinator() const {
  int place = 0;
  while (place < place_ && !is_living(place)) ++place;
  return place;
}

void Agreement::advance() {
  if (!has_entered() || is_over_) return;
  const int now = coordinator();
  const bool is_new = std::exchange(told_, now) != now;
  if (now == place_) {
    // The coordinator before may have told some members that all have left. They answer.
    if (is_new && has_left_) send_to_living(Type::kLeft, &*decision_);
    return coordinate();
  }
  if (!is_new) return;
  if (decision_) return send(now, has_left_ ? Type::kLeft : Type::kDecision, &*decision_);
  send_gift(now);
}

void Agreement::coordinate() {
  if (decision_) return end_if_all_left();
  if (!proposal_) {
    if (!has_gifts_of_living()) return;
    const Proposal* const last = last_accepted();
    proposal_ = last != nullptr ? last->result : result_of_gifts();
    accepted_ = Proposal{place_, *proposal_};
    send_to_living(Type::kProposal, &*proposal_);
  }
  for (int place = 0; place < static_cast<int>(members_.size()); ++place) {
    if (place != place_ && is_living(place) && !has_accepted_[static_cast<std::size_t>(place)]) return;
  }
  const AgreementResult result = *proposal_;
  send_to_living(Type::kDecision, &result);
  given_.clear();
  decide(result);
}

void Agreement::end_if_all_left() {
  if (!has_left_) return;
  for (int place = 0; place < static_cast<int>(members_.size()); ++place) {
    if (place != place_ && is_living(place) && !have_left_[static_cast<std::size_t>(place)]) return;
  }
  is_over_ = true;
  send_to_living(Type::kOver, nullptr);
}

bool Agreement::has_gifts_of_living() const {
  for (int place = 0; place < static_cast<int>(members_.size()); ++place) {
    if (place != place_ && is_living(place) && !given_.contains(place)) return false;
  }
  return true;
}

const Agreement::Proposal* Agreement::last_accepted() const {
  const Proposal* last = accepted_ ? &*accepted_ : nullptr;
  for (const auto& [place, given] : given_) {
    if (given.accepted && (last == nullptr || given.accepted->coordinator > last->coordinator))
      last = &*given.accepted;
  }
  return last;
}

AgreementResult Agreement::result_of_gifts() const {
  AgreementResult result;
  result.flag = gift_.flag;
  PlaceSet acknowledged = gift_.acknowledged;
  result.lost = gift_.lost;
  for (const auto& [place, given] : given_) {
    result.flag &= given.gift.flag;
    acknowledged.intersect(given.gift.acknowledged);
    result.lost.unite(given.gift.lost);
  }
  for (int place = 0; place < static_cast<int>(members_.size()); ++place) {
    if (!is_living(place)) result.lost.add(static_cast<std::size_t>(place));
  }
  result.has_unacknowledged = !result.lost.is_within(acknowledged);
  for (std::uint64_t& context : result.contexts) context = way_.new_context();
  return result;
}

void Agreement::decide(const AgreementResult& result) {
  if (decision_) return;
  decision_ = result;
  accepted_.reset();
  // They take this process for the coordinator.
  for (const auto& [place, given] : std::exchange(given_, {})) send(place, Type::kDecision, &*decision_);
  if (decided_) std::exchange(decided_, nullptr)(*decision_);
}

void Agreement::send_gift(int place) {
  Writer writer(name_);
  writer.put(Type::kGift).put(gift_.flag).put(gift_.acknowledged).put(gift_.lost);
  writer.put(std::int32_t{accepted_ ? accepted_->coordinator : -1});
  if (accepted_) writer.put(accepted_->result);
  way_.send(members_[static_cast<std::size_t>(place)], writer.take());
}

void Agreement::send(int place, Type type, const AgreementResult* result) {
  Writer writer(name_);
  writer.put(type);
  if (result != nullptr) writer.put(*result);
  way_.send(members_[static_cast<std::size_t>(place)], writer.take());
}

void Agreement::send_to_living(Type type, const AgreementResult* result) {
  for (int place = 0; place < static_cast<int>(members_.size()); ++place) {
    if (place != place_ && is_living(place)) send(place, type, result);
  }
}

}  // namespace weft::mpi
