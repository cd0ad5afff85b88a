// The chare model's start and end on one PE, and its handlers.
#include "weft/chare/bundles/aggregated.h"
#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/sections.h"
#include "weft/runtime/registry.h"

#include "base/format.h"
#include "models/chare/checkpoint/checkpoints.h"
#include "models/chare/elements/parts.h"
#include "models/chare/periodic/periodic_balancing.h"
#include "models/chare/reductions/engine_merges.h"
#include "models/chare/sparse/sparse_arrays.h"
#include "models/chare/sync/sync_points.h"
#include "runtime/losses/losses.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;
using runtime::Registry;

namespace {

// Reductions over sections as a feature of elements: how many an element has contributed to moves with it.
class SectionFeature final : public Feature {
 public:
  SectionFeature(Sections& sections, FeatureTable& table) : Feature(table), sections_(sections) {
    sections.set_handlers(table);
  }

  void pack(const ChareBase& chare, Pup& p) const override {
    std::vector<SectionCount> counts = sections_.counts_of(chare);
    p | counts;
  }
  void left(Collection& /*from*/, const ChareBase& chare) override { sections_.left(chare); }
  bool arrived(ChareBase& chare, Pup& p, int /*from_pe*/) override {
    std::vector<SectionCount> counts;
    p | counts;
    sections_.arrived(chare, counts);
    return true;
  }
  std::vector<runtime::MessagePtr> collection_ended(Collection& target, FeatureStates& /*states*/,
                                                    const std::string& why) override {
    sections_.end(target, why);
    return {};
  }

 private:
  Sections& sections_;
};

}  // namespace

base::Status FeatureTable::check() const {
  if (features_.size() <= kMostFeatures && next_handler_ - first_handler_ == Chares::kNeeds.num_handlers) {
    return {};
  }
  return {base::StatusCode::kInternal,
          base::format("the chare model has {} features and {} handlers; correct kMostFeatures and kNeeds",
                       features_.size(), next_handler_ - first_handler_)};
}

Chares::Parts::Parts(Chares& chares, runtime::Runtime& runtime, runtime::HandlerId first_handler)
    : chares_(chares),
      runtime_(runtime),
      features(runtime, first_handler),
      // In the order of ChareHandler.
      first_handler_(
          features.add_handlers<
              &Parts::on_create, &Parts::on_entry, &Parts::on_broadcast, &Parts::on_location,
              &Parts::on_gathered, &Parts::on_all_reduced, &Parts::on_destroy, &Parts::on_refused,
              &Parts::on_await_created, &Parts::on_not_created, &Parts::on_moved_here, &Parts::on_arrived,
              &Parts::on_broadcast_copy, &Parts::on_broadcast_result, &Parts::on_ask_destroyed,
              &Parts::on_element_failed, &Parts::on_call_moved, &Parts::on_revive>(*this)),
      no_elements(std::make_shared<Collection::Elements>(runtime.pe())),
      placements(runtime),
      leaving(chares),
      wanted_moves(runtime,
                   [&chares](runtime::ElementId element) { chares.parts_->move_when_idle(element); }),
      postponed_calls(chares),
      sections(std::make_unique<Sections>(chares)),
      section_feature(std::make_unique<SectionFeature>(*sections, features)),
      sparse(std::make_unique<SparseArrays>(chares, features)),
      sync(std::make_unique<SyncPoints>(chares, features)),
      periodic(std::make_unique<PeriodicBalancing>(chares, features)),
      checkpoints(std::make_unique<Checkpoints>(chares, features)),
      bundles(std::make_unique<Bundles>(chares, features)),
      sets(sparse.get()),
      large_merges(std::make_unique<EngineMerges>(runtime)),
      losses(runtime.losses().are_survived() ? std::make_unique<LostElements>(chares, first_handler_)
                                             : nullptr) {
  base::check(features.check());
}

Chares::Parts::~Parts() = default;

Chares::Chares(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : runtime_(runtime),
      first_handler_(range.first_handler),
      parts_(std::make_unique<Parts>(*this, runtime, range.first_handler)) {
  static_cast<void>(Registry<ChareType>::all());
  static_cast<void>(Registry<ConstructorInfo>::all());
  static_cast<void>(Registry<EntryInfo>::all());
  static_cast<void>(Registry<MapInfo>::all());
  runtime_.reductions().set_closed_function(
      [](void* context, runtime::ScopeId scope) {
        return static_cast<Parts*>(context)->expect_open(scope.root_pe, scope.id);
      },
      parts_.get());
  runtime_.reductions().set_name_function(
      [](void* context, runtime::ScopeId scope) {
        return static_cast<Parts*>(context)->name_of_contributors(scope);
      },
      parts_.get());
  runtime_.reductions().set_result_function(
      first_handler_ + kAllReduced,
      [](void* context, std::span<const std::byte> prefix, std::span<const std::byte> result) {
        auto& self = *static_cast<Chares*>(context);
        Pup value = Pup::unpacker(result.data(), result.size(), &self.runtime_);
        self.parts_->all_reduces.complete(base::unpack<AllReduces::Key>(prefix), value);
      },
      this);
  runtime_.reductions().set_large_merges(parts_->large_merges.get());
  runtime_.set_poster(
      entry_handler(),
      [](void* context, MessagePtr& message, std::span<runtime::ReceiveBuffer> receive_buffers) {
        return static_cast<Parts*>(context)->place(message, receive_buffers);
      },
      [](void* context, Message& message) { static_cast<Parts*>(context)->place_dropped(message); });
  runtime_.set_poster(first_handler_ + kMove, [](void* context, MessagePtr& message,
                                                 std::span<runtime::ReceiveBuffer> receive_buffers) {
    return static_cast<Parts*>(context)->place_moved(*message, receive_buffers);
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
    for (const auto& [index, one] : elements->being_created) delete one;
  }
  runtime_.reductions().set_large_merges(nullptr);
}

void Chares::close() {
  parts_->placements.close();
  parts_->bundles->close();
  for (auto& [id, collection] : parts_->collections) {
    collection->elements_->waiting.clear();
    collection->elements_->held.clear();
    for (Feature* const feature : parts_->features) feature->close(*collection);
  }
}

std::vector<std::pair<std::string, std::string>> Chares::fingerprint() const {
  return {runtime::registry_fact<ChareType>("chare types"),
          runtime::registry_fact<ConstructorInfo>("constructors"),
          runtime::registry_fact<EntryInfo>("entry methods"),
          runtime::registry_fact<MapInfo>("maps"),
          {"WEFT_LB_PERIOD", base::format("{} s", parts_->sync->options().period_s)},
          {"WEFT_LB and WEFT_LB_RECORD",
           parts_->sync->options().decides_together() ? "the PEs decide together" : "one PE decides"},
          {"WEFT_ORDERED_REDUCTIONS", runtime_.reductions().is_ordered() ? "on" : "off"}};
}

std::vector<runtime::ModelOption> Chares::options() {
  std::vector<runtime::ModelOption> options = parts_->sync->variables();
  options.push_back({"WEFT_ORDERED_REDUCTIONS", "1 or 0", [this](std::string_view value) {
                       runtime_.reductions().set_ordered(value == "1");
                       return value.empty() || value == "0" || value == "1";
                     }});
  return options;
}

base::Status Chares::obstacle_to_moving(runtime::ElementId element) const {
  const auto found = parts_->collections.find(element.collection);
  const ChareBase* const chare =
      found == parts_->collections.end() ? nullptr : found->second->find(element.index);
  if (chare == nullptr || chare->num_waiting_methods() == 0) return {};
  const std::uint32_t count = chare->num_waiting_methods();
  return {base::StatusCode::kInvalidArgument,
          base::format("{} has {} coroutine{} that wait{}", chare->where(), count, count == 1 ? "" : "s",
                       count == 1 ? "s" : "")};
}

const ClassNames& Chares::shared_names(ClassNames names) {
  return *parts_->class_names.insert(std::move(names)).first;
}

runtime::Future<> Chares::revive(Collection& collection, std::uint64_t index) {
  if (parts_->losses == nullptr) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "chares can be revived in a job that `weft run --on-loss raise` has started");
  }
  return parts_->losses->revive(collection, index);
}

base::VectorPool& Chares::vectors() { return parts_->vectors; }
Bundles& Chares::bundles() { return *parts_->bundles; }
Checkpoints& Chares::checkpoints() { return *parts_->checkpoints; }
PeriodicBalancing& Chares::periodic() { return *parts_->periodic; }
SyncPoints& Chares::sync() { return *parts_->sync; }

}  // namespace weft::chare
