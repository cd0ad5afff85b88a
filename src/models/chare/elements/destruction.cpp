// The end of a collection: its elements are freed on each PE, and what comes for them later is refused.
//
// A broadcast reaches every PE, which frees its elements in that turn, because no entry method runs then. An element with
// an entry method that waits, or with a call whose buffers land, is freed when that has ended. Each model hears of every
// element in that turn and ends what its methods wait for; such a method ends with Error(kClosed), which is no failure of
// the program. Messages may overtake the broadcast, and may come after it; a PE knows a destroyed collection for the rest of
// the job, by its id, name and shape.
#include <algorithm>
#include <memory>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/outcome.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;
using runtime::Registry;

namespace {

struct DestroyHeader {
  std::uint64_t collection = 0;
  std::uint32_t pe = 0;  // of the gather that counts the PEs
  std::uint64_t gather = 0;
  std::string failure;
  void pup(Pup& p) { p | collection | pe | gather | failure; }
};

struct AskDestroyed {
  std::uint64_t collection = 0;
  std::uint64_t gather = 0;
  std::uint32_t pe = 0;
  std::uint32_t reserved = 0;
};

std::exception_ptr closed_error(const std::string& text) {
  return std::make_exception_ptr(base::Error(base::StatusCode::kClosed, text));
}

// Whether the message names a PE of the job. Fails the job if not.
bool expect_pe(runtime::Runtime& runtime, const Message& message, std::uint32_t pe, std::string_view what) {
  if (pe < static_cast<std::uint32_t>(runtime.num_pes())) return true;
  runtime.fail(base::format("PE {} {} for PE {} of {}; do all PEs run the same program?",
                            message.envelope().source_pe, what, pe, runtime.num_pes()));
  return false;
}

}  // namespace

// --- Elements that leave

LeavingChares::~LeavingChares() = default;

void LeavingChares::add(std::shared_ptr<ChareBase> chare) {
  ChareBase* const key = chare.get();
  waiting_.emplace(key, std::move(chare));
}

void LeavingChares::free_later(runtime::Runtime& runtime, ChareBase& chare) {
  auto node = waiting_.extract(&chare);
  if (node.empty()) return;
  idle_.push_back(std::move(node.mapped()));
  if (idle_.size() == 1 && !runtime.closed()) runtime.post(&work_);
}

void LeavingChares::free_idle() {
  // A destructor may end further methods, so the list may grow meanwhile.
  std::vector<std::shared_ptr<ChareBase>> idle = std::exchange(idle_, {});
  for (auto& chare : idle) {
    // A call whose buffers had landed has begun since.
    if (chare->num_suspended() != 0) add(std::move(chare));
  }
  std::erase(idle, nullptr);
  chares_.parts_->free(std::move(idle));
}

void Chares::Parts::free_later(ChareBase& chare) { leaving.free_later(runtime_, chare); }

// --- Destroying

runtime::Future<> Chares::destroy(Collection& collection) {
  collection.expect_alive();
  return parts_->end_everywhere(collection, {});
}

runtime::Future<> Chares::Parts::end_everywhere(Collection& collection, const std::string& failure) {
  runtime::Future<> done(runtime_);
  const ReplyTo reply = chares_.expect_gather([done](Pup&) { done.set(); });
  send_to_all(Message::pack(runtime_, first_handler_ + kDestroy,
                            DestroyHeader{collection.id(), reply.pe, reply.id, failure}));
  return done;
}

void Chares::Parts::take_part(std::uint32_t to_pe, std::uint64_t gather, bool value) {
  const ReplyTo reply{ReplyTo::Kind::kGather, to_pe, gather};
  if (is_given_up(reply, runtime_.pe())) return;
  const runtime::ScopeId scope{to_pe, kGatherScopes | gather};
  runtime_.reductions().open(scope, static_cast<std::uint64_t>(runtime_.num_pes()), 1, true);
  const std::vector<std::byte> outcome = base::pack(std::pair(false, value), &runtime_);  // it has not failed
  runtime_.reductions().contribute(scope, 0, static_cast<std::uint64_t>(runtime_.pe()),
                                   runtime::Reducer::kGather, nullptr, outcome, gather_target(reply));
}

void Chares::Parts::on_destroy(MessagePtr message) {
  DestroyHeader header;
  message->unpacker() | header;
  if (!expect_pe(runtime_, *message, header.pe, "destroys a collection")) return;
  Collection& target = chares_.collection(header.collection);
  if (!target.created_ && !target.destroyed_ && target.failure_ == nullptr) {  // its creation is under way
    target.elements_->waiting.push_back(std::move(message));
    return;
  }
  if (!target.destroyed_) end_collection(target, header.failure);
  take_part(header.pe, header.gather);
}

void Chares::Parts::end_collection(Collection& target, const std::string& failure) {
  if (!failure.empty()) target.failure_ = std::make_unique<std::string>(failure);
  for (Feature* const feature : features) feature->collection_ends(target);
  target.destroyed_ = true;
  target.created_ = false;
  if (losses != nullptr) losses->ended(target);
  target.shape_ = target.shape_.without_table();
  // From here on no message finds an element, and destructors of programs may call anything.
  const std::shared_ptr<Collection::Elements> elements =
      std::exchange(target.elements_,
                    target.is_sparse() ? std::make_shared<Collection::Elements>(runtime_.pe()) : no_elements);
  const std::string why =
      base::format("the collection {} was destroyed before the reduction was complete", target.name());
  runtime_.reductions().close(scope_of(target), why);
  std::vector<MessagePtr> late;
  for (Feature* const feature : features) {
    for (MessagePtr& one : feature->collection_ended(target, elements->states, why))
      late.push_back(std::move(one));
  }
  all_reduces.fail(target.id(), closed_error(why));
  std::vector<std::shared_ptr<ChareBase>> chares;
  const auto ends = [&](std::uint64_t, ChareBase& chare) {
    chares.emplace_back(&chare);
    if (chare.num_suspended() == 0) return;
    chare.num_suspended_ |= ChareBase::kLeaves;
    leaving.add(chares.back());
  };
  elements->directory.for_each(ends);
  for (const auto& [index, chare] : elements->being_created) ends(index, *chare);
  elements->being_created.clear();
  elements->directory = runtime::Directory<ChareBase>(runtime_.pe());  // owns nothing any more
  for (const auto& chare : chares) {
    for (const runtime::Runtime::InstalledModel& installed : runtime_.models())
      installed.model->element_ends({target.id(), chare->linear_index()}, chare);
    refuse_waiting_calls(*chare);
  }
  std::erase_if(chares, [](const auto& chare) { return chare->num_suspended_ != 0; });
  free(std::move(chares));
  for (MessagePtr& early : elements->waiting) runtime_.send(runtime_.pe(), std::move(early));
  for (auto& [index, held] : elements->held) {
    for (MessagePtr& early : held) runtime_.send(runtime_.pe(), std::move(early));
  }
  for (MessagePtr& one : late) runtime_.send(runtime_.pe(), std::move(one));
}

void Chares::Parts::free(std::vector<std::shared_ptr<ChareBase>> chares) {
  for (auto& chare : chares) {
    const runtime::ElementId element{chare->collection().id(), chare->linear_index()};
    chare.reset();
    for (const runtime::Runtime::InstalledModel& installed : runtime_.models())
      installed.model->element_has_ended(element);
  }
}

// --- Methods that end with their collection

// The end of a channel may arrive before the end of the chare's own collection, if both end at the same time. The PE that
// destroys knows of both by then, so all PEs are asked before the job ends, or before created() has failed.
void Chares::end_closed_method(const ChareBase& chare, const std::exception_ptr& error,
                               const std::string& where) {
  Collection& in = chare.collection();
  if (in.is_destroyed()) return;
  // Until then the only method that runs is created().
  const bool is_created = !in.elements_->being_created.contains(chare.linear_index());
  const ReplyTo reply = expect_gather([this, &in, is_created, error, where](Pup& p) {
    bool is_destroyed = false;
    read_gathered(
        p, [](std::uint64_t) {},
        [&is_destroyed](std::uint64_t, Pup& from) {
          bool is_known = false;
          from | is_known;
          is_destroyed = is_destroyed || is_known;
        });
    if (is_destroyed) return;
    is_created ? runtime_.fail_unawaited(error, where) : parts_->report_not_created(in, where, error);
  });
  parts_->send_to_all(
      Message::pack(runtime_, first_handler_ + kAskDestroyed, AskDestroyed{in.id(), reply.id, reply.pe}));
}

void Chares::Parts::on_ask_destroyed(MessagePtr message) {
  AskDestroyed asked;
  message->unpacker() | asked;
  if (!expect_pe(runtime_, *message, asked.pe, "asks about a collection")) return;
  Collection& target = chares_.collection(asked.collection);
  if (!target.created_ && !target.destroyed_ && target.failure_ == nullptr) {
    target.elements_->waiting.push_back(std::move(message));  // perhaps behind its end
  } else {
    take_part(asked.pe, asked.gather, target.destroyed_);
  }
}

// --- What comes too late

std::string Collection::why_gone() const {
  if (failure_ != nullptr)
    return base::format("the collection {} could not be created: {}", name(), *failure_);
  return base::format("the collection {} has been destroyed", name());
}

void Collection::throw_destroyed() const {
  throw base::Error(base::StatusCode::kClosed, why_gone() + "; a proxy that outlives it cannot be used");
}

// "a call of Ring[3].token from PE 0"
std::string Chares::Parts::describe_call(const Collection& target, const EntryHeader& header,
                                         Message& message) {
  const std::uint32_t from_pe = message.envelope().source_pe;
  const bool is_to_all = message.envelope().handler == chares_.broadcast_handler();
  const bool has_index = !is_to_all && header.index < target.shape().size();
  const std::string to = has_index ? target.element_name(header.index) : target.name();
  if (!is_to_all && message.envelope().handler != chares_.entry_handler())
    return base::format("a message for {} from PE {}", to, from_pe);
  const EntryInfo* const entry = Registry<EntryInfo>::find(header.entry);
  if (entry == nullptr) return base::format("a call of {} from PE {}", to, from_pe);
  Pup arguments = arguments_of(message);
  const std::string method =
      entry->method_of == nullptr ? short_name_of(*entry) : entry->method_of(target, arguments);
  return base::format("a call of {}.{} from PE {}", to, method, from_pe);
}

void Chares::Parts::refuse(Collection& target, const EntryHeader& header, Message& message) {
  const bool has_failed = target.failure_ != nullptr;
  const std::string why =
      base::format("{} {}: {}. Await {}", describe_call(target, header, message),
                   has_failed ? "has no result" : "comes too late", target.why_gone(),
                   has_failed ? "the creation, which tells the error" : "all calls before chares_.destroy()");
  // Where the creation failed, its caller knows that nothing was done.
  if (header.reply.kind == ReplyTo::Kind::kNone && has_failed) return;
  refuse(target, header, message, base::StatusCode::kClosed, why);
}

void Chares::Parts::refuse(Collection& target, const EntryHeader& header, const Message& message,
                           base::StatusCode code, const std::string& why) {
  const std::exception_ptr error = std::make_exception_ptr(base::Error(code, why));
  const ReplyTo& reply = header.reply;
  if (reply.kind > ReplyTo::Kind::kGather || reply.pe >= static_cast<std::uint32_t>(runtime_.num_pes())) {
    runtime_.fail(base::format(
        "a message from PE {} names a caller that does not exist; do all PEs run the same program?",
        message.envelope().source_pe));
  } else if (reply.kind == ReplyTo::Kind::kNone) {
    runtime_.fail(base::format("PE {}: {}", runtime_.pe(), why));
  } else if (reply.kind == ReplyTo::Kind::kFuture) {
    using runtime::FutureSetHeader;
    runtime_.send(static_cast<int>(reply.pe),
                  runtime::pack_future_error(runtime_, {reply.id, FutureSetHeader::kError}, error));
  } else if (!is_given_up(reply, runtime_.pe())) {
    // This PE has no part of the results. The caller gives them all up.
    if (!reply.is_direct()) {
      runtime_.reductions().open({reply.pe, kGatherScopes | reply.id}, target.num_elements(), 0, true);
    }
    Pup sizer = Pup::sizer(&runtime_);
    sizer | reply.gather();
    runtime::pack_error(sizer, error);
    MessagePtr refusal = Message::create(runtime_, first_handler_ + kRefused, sizer.offset_bytes());
    Pup p = Pup::packer(refusal->payload(), refusal->payload_bytes(), &runtime_);
    p | reply.gather();
    runtime::pack_error(p, error);
    runtime_.send(static_cast<int>(reply.pe), std::move(refusal));
  }
}

void Chares::Parts::on_refused(MessagePtr message) {
  Pup p = message->unpacker();
  std::uint64_t id = 0;
  p | id;
  give_up_gather(id, runtime::unpack_error(p));
}

void Chares::Parts::give_up_gather(std::uint64_t id, const std::exception_ptr& error) {
  const auto found = gathers.find(id);
  if (found == gathers.end()) return;  // another PE has refused it too
  const std::function<void(Pup&)> done = std::move(found->second);
  gathers.erase(found);
  given_up.insert(id);
  runtime_.reductions().close({static_cast<std::uint32_t>(runtime_.pe()), kGatherScopes | id}, {});
  if (done) end_gather(done, error);
}

std::string Chares::Parts::name_of_contributors(runtime::ScopeId scope) const {
  const auto number = collection_of(scope);
  const auto found = number ? collections.find(*number) : collections.end();
  return found == collections.end() ? std::string() : found->second->name();
}

base::Status Chares::Parts::expect_open(std::uint32_t root_pe, std::uint64_t scope) const {
  if ((scope & kGatherScopes) != 0) {
    const ReplyTo reply{ReplyTo::Kind::kGather, root_pe, scope & ~kGatherScopes};
    if (!is_given_up(reply, runtime_.pe())) return {};
    return {base::StatusCode::kClosed, "the results of a call were given up"};
  }
  if (scope < runtime::kFirstModelScope) return {};
  const std::uint64_t number = scope - runtime::kFirstModelScope;
  const auto set = static_cast<std::uint32_t>(number >> 32);
  const auto found = collections.find(std::uint64_t{root_pe} << 32 | (number & 0xffffffff));
  if (found == collections.end()) return {};
  if (!found->second->is_destroyed()) return sets->expect_open(*found->second, set);
  return {base::StatusCode::kClosed,
          base::format("the collection {} was destroyed before the reduction was complete",
                       found->second->name())};
}

}  // namespace weft::chare
