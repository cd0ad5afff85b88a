// The chare model's start and end on one PE, and its handlers.
#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/runtime/registry.h"

#include "base/format.h"
#include "models/chare/parts.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;
using runtime::Registry;

Chares::Chares(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : runtime_(runtime),
      first_handler_(range.first_handler),
      parts_(std::make_unique<Parts>(*this, runtime)) {
  static_cast<void>(Registry<ChareType>::all());
  static_cast<void>(Registry<ConstructorInfo>::all());
  static_cast<void>(Registry<EntryInfo>::all());
  static_cast<void>(Registry<MapInfo>::all());
  auto set = [this]<void (Chares::*Handle)(MessagePtr)>(ChareHandler handler) {
    runtime_.set_handler(
        first_handler_ + handler,
        [](void* context, MessagePtr message) {
          (static_cast<Chares*>(context)->*Handle)(std::move(message));
        },
        this);
  };
  set.operator()<&Chares::on_create>(kCreate);
  set.operator()<&Chares::on_entry>(kEntry);
  set.operator()<&Chares::on_broadcast>(kBroadcast);
  set.operator()<&Chares::on_location>(kLocation);
  set.operator()<&Chares::on_gathered>(kGathered);
  set.operator()<&Chares::on_element_failed>(kElementFailed);
  set.operator()<&Chares::on_all_reduced>(kAllReduced);
  set.operator()<&Chares::on_destroy>(kDestroy);
  set.operator()<&Chares::on_refused>(kRefused);
  set.operator()<&Chares::on_await_created>(kAwaitCreated);
  set.operator()<&Chares::on_not_created>(kNotCreated);
  set.operator()<&Chares::on_moved_here>(kMove);
  set.operator()<&Chares::on_arrived>(kArrived);
  set.operator()<&Chares::on_broadcast_copy>(kBroadcastCopy);
  set.operator()<&Chares::on_broadcast_result>(kBroadcastResult);
  set.operator()<&Chares::on_ask_destroyed>(kAskDestroyed);
  set.operator()<&Chares::on_sync>(kSync);
  set.operator()<&Chares::on_periodic>(kPeriodic);
  set.operator()<&Chares::on_sparse>(kSparse);
  set.operator()<&Chares::on_remove>(kRemove);
  parts_->checkpoints.set_handlers(first_handler_);
  parts_->sections.set_handlers(first_handler_);
  runtime_.reductions().set_closed_function(
      [](void* context, runtime::ScopeId scope) {
        return static_cast<Chares*>(context)->why_closed(scope.root_pe, scope.id);
      },
      this);
  runtime_.reductions().set_result_function(
      first_handler_ + kAllReduced,
      [](void* context, std::span<const std::byte> prefix, std::span<const std::byte> result) {
        auto& self = *static_cast<Chares*>(context);
        Pup value = Pup::unpacker(result.data(), result.size(), &self.runtime_);
        self.parts_->all_reduces.complete(base::unpack<AllReduces::Key>(prefix), value);
      },
      this);
  runtime_.set_poster(
      entry_handler(),
      [](void* context, MessagePtr& message, std::span<runtime::ReceiveBuffer> receive_buffers) {
        return static_cast<Chares*>(context)->place(message, receive_buffers);
      },
      [](void* context, Message& message) { static_cast<Chares*>(context)->place_dropped(message); });
  runtime_.set_poster(first_handler_ + kMove, [](void* context, MessagePtr& message,
                                                 std::span<runtime::ReceiveBuffer> receive_buffers) {
    return static_cast<Chares*>(context)->place_moved(*message, receive_buffers);
  });
}

// Elements go first, because destructors of programs may call anything.
Chares::~Chares() {
  std::vector<std::shared_ptr<Collection::Elements>> all;
  for (auto& [id, collection] : parts_->collections)
    all.push_back(
        std::exchange(collection->elements_, std::make_shared<Collection::Elements>(runtime_.pe())));
  parts_->leaving.clear();
  for (const auto& elements : all) {
    elements->directory.for_each([](std::uint64_t, ChareBase& chare) { delete &chare; });
    for (const auto& [index, one] : elements->being_created) delete one.chare;
  }
}

void Chares::close() {
  parts_->placements.close();
  for (auto& [id, collection] : parts_->collections) {
    collection->elements_->waiting.clear();
    collection->elements_->held.clear();
    collection->elements_->sparse.reset();
  }
}

std::vector<std::pair<std::string, std::string>> Chares::fingerprint() const {
  return {runtime::registry_fact<ChareType>("chare types"),
          runtime::registry_fact<ConstructorInfo>("constructors"),
          runtime::registry_fact<EntryInfo>("entry methods"),
          runtime::registry_fact<MapInfo>("maps"),
          {"WEFT_LB_PERIOD", base::format("{} s", parts_->sync.options().period_s)},
          {"WEFT_LB and WEFT_LB_RECORD",
           parts_->sync.options().decides_together() ? "the PEs decide together" : "one PE decides"}};
}

std::vector<runtime::ModelOption> Chares::options() { return parts_->sync.variables(); }

std::string Chares::obstacle_to_moving(runtime::ElementId element) const {
  const auto found = parts_->collections.find(element.collection);
  const ChareBase* const chare =
      found == parts_->collections.end() ? nullptr : found->second->find(element.index);
  if (chare == nullptr || chare->num_waiting_methods() == 0) return {};
  const std::uint32_t count = chare->num_waiting_methods();
  return base::format("{} has {} coroutine{} that wait{}", chare->where(), count, count == 1 ? "" : "s",
                      count == 1 ? "s" : "");
}

base::VectorPool& Chares::vectors() { return parts_->vectors; }
Checkpoints& Chares::checkpoints() { return parts_->checkpoints; }
PeriodicBalancing& Chares::periodic() { return parts_->periodic; }

}  // namespace weft::chare
