// The end of a collection: its elements are freed on each PE, and what comes for them later is refused.
//
// A broadcast reaches every PE, which frees its elements in that turn, because no entry method runs then. An element with
// an entry method that waits, or with a call whose buffers land, is freed when that has ended. Messages may overtake the
// broadcast, and may come after it; a PE knows a destroyed collection for the rest of the job, by its id, name and shape.
#include <algorithm>
#include <memory>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/outcome.h"

#include "base/format.h"
#include "models/chare/parts.h"

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

std::exception_ptr closed_error(const std::string& text) {
  return std::make_exception_ptr(base::Error(base::StatusCode::kClosed, text));
}

}  // namespace

// --- Elements that leave

LeavingChares::~LeavingChares() = default;

void LeavingChares::add(std::unique_ptr<ChareBase> chare) {
  ChareBase* const key = chare.get();
  waiting_.emplace(key, std::move(chare));
}

void LeavingChares::free_later(runtime::Runtime& runtime, ChareBase& chare) {
  auto node = waiting_.extract(&chare);
  if (node.empty()) return;
  idle_.push_back(std::move(node.mapped()));
  if (idle_.size() == 1 && !runtime.closed()) runtime.post(&work_);
}

bool LeavingChares::contains(runtime::ElementId element) const {
  const auto is_it = [element](const ChareBase& chare) {
    return chare.collection().id() == element.collection && chare.linear_index() == element.index;
  };
  return std::ranges::any_of(waiting_, [&is_it](const auto& one) { return is_it(*one.first); }) ||
         std::ranges::any_of(idle_, [&is_it](const auto& one) { return is_it(*one); });
}

void LeavingChares::FreeWork::turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action) {
  if (action == runtime::WorkAction::kDrop) return;  // freed with their owner
  LeavingChares& owner = static_cast<FreeWork*>(self)->owner;
  // A destructor may end further methods, so the list may grow meanwhile.
  std::vector<std::unique_ptr<ChareBase>> idle = std::exchange(owner.idle_, {});
  for (auto& chare : idle) {
    // A call whose buffers had landed has begun since.
    if (chare->num_suspended() != 0) owner.add(std::move(chare));
  }
  std::erase(idle, nullptr);
  owner.chares_.free(std::move(idle));
}

void Chares::free_later(ChareBase& chare) { parts_->leaving.free_later(runtime_, chare); }

// --- Destroying

runtime::Future<> Chares::destroy(Collection& collection) {
  collection.expect_alive();
  return end_everywhere(collection, {});
}

runtime::Future<> Chares::end_everywhere(Collection& collection, const std::string& failure) {
  runtime::Future<> done(runtime_);
  const ReplyTo reply = expect_gather([done](Pup&) { done.set(); });
  send_to_all(Message::pack(runtime_, first_handler_ + kDestroy,
                            DestroyHeader{collection.id(), reply.pe, reply.id, failure}));
  return done;
}

void Chares::take_part(std::uint32_t to_pe, std::uint64_t gather) {
  const ReplyTo reply{ReplyTo::Kind::kGather, to_pe, gather};
  if (parts_->is_given_up(reply, runtime_.pe())) return;
  const runtime::ScopeId scope{to_pe, kGatherScopes | gather};
  runtime_.reductions().open(scope, static_cast<std::uint64_t>(runtime_.num_pes()), 1, true);
  const std::vector<std::byte> succeeded = base::pack(false, &runtime_);
  runtime_.reductions().contribute(scope, 0, static_cast<std::uint64_t>(runtime_.pe()),
                                   runtime::Reducer::kGather, nullptr, succeeded, gather_target(reply));
}

void Chares::on_destroy(MessagePtr message) {
  DestroyHeader header;
  message->unpacker() | header;
  if (header.pe >= static_cast<std::uint32_t>(runtime_.num_pes())) {
    runtime_.fail(
        base::format("PE {} destroys a collection for PE {} of {}; do all PEs run the same program?",
                     message->envelope().source_pe, header.pe, runtime_.num_pes()));
    return;
  }
  Collection& target = collection(header.collection);
  if (!target.created_ && !target.destroyed_ && target.failure_ == nullptr) {  // its creation is under way
    target.elements_->waiting.push_back(std::move(message));
    return;
  }
  if (!target.destroyed_) end_collection(target, header.failure);
  take_part(header.pe, header.gather);
}

void Chares::end_collection(Collection& target, const std::string& failure) {
  if (!failure.empty()) target.failure_ = std::make_unique<std::string>(failure);
  target.destroyed_ = true;
  target.created_ = false;
  target.shape_ = target.shape_.without_table();
  // From here on no message finds an element, and destructors of programs may call anything.
  auto elements = std::make_unique<Collection::Elements>(runtime_.pe());
  elements.swap(target.elements_);
  const std::string why =
      base::format("the collection {} was destroyed before the reduction was complete", target.name());
  runtime_.reductions().close(scope_of(target), why);
  parts_->all_reduces.fail(target.id(), closed_error(why));
  std::vector<std::unique_ptr<ChareBase>> idle;
  elements->directory.for_each([&](std::uint64_t, ChareBase& chare) {
    std::unique_ptr<ChareBase> owned(&chare);
    if (chare.num_suspended() == 0) {
      idle.push_back(std::move(owned));
    } else {
      chare.num_suspended_ |= ChareBase::kLeaves;
      parts_->leaving.add(std::move(owned));
    }
  });
  elements->directory = runtime::Directory<ChareBase>(runtime_.pe());  // owns nothing any more
  free(std::move(idle));
  for (MessagePtr& early : elements->waiting) runtime_.send(runtime_.pe(), std::move(early));
  for (auto& [index, held] : elements->held) {
    for (MessagePtr& early : held) runtime_.send(runtime_.pe(), std::move(early));
  }
}

void Chares::free(std::vector<std::unique_ptr<ChareBase>> chares) {
  for (auto& chare : chares) {
    const runtime::ElementId element{chare->collection().id(), chare->linear_index()};
    const std::shared_ptr<ChareBase> itself = std::move(chare);
    for (const runtime::Runtime::InstalledModel& installed : runtime_.models())
      installed.model->element_ends(element, itself);
  }
}

bool Chares::is_leaving(runtime::ElementId element) const { return parts_->leaving.contains(element); }

// --- What comes too late

std::string Collection::why_gone() const {
  if (failure_ != nullptr)
    return base::format("the collection {} could not be created: {}", name(), *failure_);
  return base::format("the collection {} has been destroyed", name());
}

void Collection::throw_destroyed() const {
  throw base::Error(base::StatusCode::kClosed, why_gone() + "; a proxy that outlives it cannot be used");
}

void Chares::refuse(Collection& target, const EntryHeader& header, const Message& message) {
  const EntryInfo* const entry = Registry<EntryInfo>::find(header.entry);
  std::string what = base::format("a message from PE {} for {}", message.envelope().source_pe, target.name());
  if (message.envelope().handler == entry_handler() || message.envelope().handler == broadcast_handler()) {
    what = base::format("a call from PE {} of {} of {}", message.envelope().source_pe,
                        entry == nullptr ? std::string("an entry method") : std::string(entry->name),
                        target.name());
  }
  const std::string why =
      base::format("{} comes too late: {}. Await all calls before destroy()", what, target.why_gone());
  const std::exception_ptr error = closed_error(why);
  const ReplyTo& reply = header.reply;
  if (reply.kind > ReplyTo::Kind::kGather || reply.pe >= static_cast<std::uint32_t>(runtime_.num_pes())) {
    runtime_.fail(base::format(
        "a message from PE {} names a caller that does not exist; do all PEs run the same program?",
        message.envelope().source_pe));
  } else if (reply.kind == ReplyTo::Kind::kNone) {
    // Where the creation failed, its caller knows that nothing was done.
    if (target.failure_ == nullptr) runtime_.fail(base::format("PE {}: {}", runtime_.pe(), why));
  } else if (reply.kind == ReplyTo::Kind::kFuture) {
    using runtime::FutureSetHeader;
    runtime_.send(static_cast<int>(reply.pe),
                  runtime::pack_future_error(runtime_, {reply.id, FutureSetHeader::kError}, error));
  } else if (!parts_->is_given_up(reply, runtime_.pe())) {
    // This PE has no part of the results. The caller gives them all up.
    if (!reply.is_direct()) {
      runtime_.reductions().open({reply.pe, kGatherScopes | reply.id}, target.shape().size(), 0, true);
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

void Chares::on_refused(MessagePtr message) {
  Pup p = message->unpacker();
  std::uint64_t id = 0;
  p | id;
  give_up_gather(id, runtime::unpack_error(p));
}

void Chares::give_up_gather(std::uint64_t id, const std::exception_ptr& error) {
  const auto found = parts_->gathers.find(id);
  if (found == parts_->gathers.end()) return;  // another PE has refused it too
  const std::function<void(Pup&)> done = std::move(found->second);
  parts_->gathers.erase(found);
  parts_->given_up.insert(id);
  runtime_.reductions().close({static_cast<std::uint32_t>(runtime_.pe()), kGatherScopes | id}, {});
  // As one element that has failed.
  const auto pack = [&error](Pup& p) {
    p | std::uint64_t{1} | true;
    runtime::pack_error(p, error);
  };
  Pup sizer = Pup::sizer(&runtime_);
  pack(sizer);
  std::vector<std::byte> bytes(sizer.offset_bytes());
  Pup packer = Pup::packer(bytes.data(), bytes.size(), &runtime_);
  pack(packer);
  Pup outcome = Pup::unpacker(bytes.data(), bytes.size(), &runtime_);
  try {
    done(outcome);
  } catch (...) {
    runtime_.fail_unawaited(std::current_exception(),
                            base::format("the results of a call on PE {}", runtime_.pe()));
  }
}

std::string Chares::why_closed(std::uint32_t root_pe, std::uint64_t scope) const {
  if ((scope & kGatherScopes) != 0) {
    const ReplyTo reply{ReplyTo::Kind::kGather, root_pe, scope & ~kGatherScopes};
    return parts_->is_given_up(reply, runtime_.pe()) ? "the results of a call were given up" : std::string();
  }
  if (scope < runtime::kFirstModelScope) return {};
  const auto found =
      parts_->collections.find(std::uint64_t{root_pe} << 32 | (scope - runtime::kFirstModelScope));
  if (found == parts_->collections.end() || !found->second->is_destroyed()) return {};
  return base::format("the collection {} was destroyed before the reduction was complete",
                      found->second->name());
}

}  // namespace weft::chare
