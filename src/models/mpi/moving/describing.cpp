#include "models/mpi/moving/describing.h"

#include <map>
#include <memory>
#include <utility>

#include "models/mpi/objects/attributes.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

template <class T>
Address address_of(T* pointer) {
  return reinterpret_cast<Address>(pointer);
}

ObjectDescription description_of(Object& object) {
  return {.address = address_of(&object), .references = object.num_references()};
}

HandlerName name_of(const Ref<ErrorHandler>& handler) {
  const ErrorHandler::Action action = handler->action();
  const bool is_object = action == ErrorHandler::Action::kCall;
  return {.action = static_cast<std::uint8_t>(action),
          .object = is_object ? address_of(static_cast<Object*>(handler.get())) : 0};
}

class Describer {
 public:
  explicit Describer(Rank& rank) : rank_(rank) {}

  RankDescription describe(std::span<Object* const> objects) {
    for (Object* const object : objects) add(*object);
    add_state();
    return std::move(all_);
  }

 private:
  void add(Object& object) {
    switch (object.kind()) {
      case ObjectKind::kErrorHandler:
        return add(static_cast<ErrorHandler&>(object));
      case ObjectKind::kInfo:
        all_.infos.push_back({description_of(object), static_cast<Info&>(object).pairs()});
        return;
      case ObjectKind::kGroup:
        all_.groups.push_back({description_of(object), number_of(static_cast<Group&>(object).members())});
        return;
      case ObjectKind::kOperation:
        return add(static_cast<ReductionOperator&>(object));
      case ObjectKind::kDatatype:
        return add(static_cast<Datatype&>(object));
      case ObjectKind::kCommunicator:
        return add(static_cast<Communicator&>(object));
      default:
        return;
    }
  }

  void add(ErrorHandler& handler) {
    all_.handlers.push_back({.object = description_of(handler),
                             .caller = static_cast<std::uint8_t>(handler.caller()),
                             .function = address_of(handler.function())});
  }

  void add(ReductionOperator& operation) {
    all_.operations.push_back({.object = description_of(operation),
                               .function = address_of(operation.function()),
                               .large_function = address_of(operation.large_function()),
                               .is_commutative = operation.is_commutative()});
  }

  void add(Datatype& type) {
    const Recipe& recipe = type.recipe();
    DatatypeDescription& made = all_.datatypes.emplace_back();
    made.object = description_of(type);
    made.combiner = recipe.combiner;
    made.is_large = recipe.form == CallForm::kLarge;
    made.integers = recipe.integers;
    made.addresses.assign(recipe.addresses.begin(), recipe.addresses.end());
    made.counts.assign(recipe.counts.begin(), recipe.counts.end());
    for (const Ref<Datatype>& part : recipe.datatypes) made.parts.push_back(address_of(part->handle()));
    made.is_committed = type.is_committed();
    made.name = type.name();
    made.attributes = attributes_of(type);
  }

  void add(Communicator& communicator) {
    CommunicatorDescription& made = all_.communicators.emplace_back();
    made.object = description_of(communicator);
    made.context = communicator.context();
    made.local_context = communicator.local_context();
    made.members = number_of(communicator.group());
    made.rank = communicator.rank();
    made.is_inter = communicator.is_inter();
    if (made.is_inter) made.remote_members = number_of(communicator.remote_group());
    made.has_topology = communicator.topology != nullptr;
    if (made.has_topology) made.topology = *communicator.topology;
    made.state = state_of(communicator);
  }

  CommunicatorState state_of(Communicator& communicator) {
    return {.scope = scope_of(communicator),
            .info = communicator.info,
            .call_numbers = communicator.call_numbers()};
  }

  ScopeDescription scope_of(ErrorScope& scope) {
    return {
        .handler = name_of(scope.error_handler()), .name = scope.name(), .attributes = attributes_of(scope)};
  }

  AttributeDescriptions attributes_of(Object& object) {
    AttributeDescriptions made;
    if (!object.has_attributes()) return made;
    object.attributes().for_each([&](const AttributeKey& key, int number, void* value) {
      made.push_back({.key = number_of(key), .number = number, .value = address_of(value)});
    });
    return made;
  }

  void add_state() {
    for (const auto& [number, entry] : rank_.attribute_keys.all()) {
      if (entry.is_over()) continue;
      all_.key_numbers[number] = number_of(*entry.key);
      if (entry.is_freed) all_.freed_keys.push_back(number);
    }
    all_.next_key_number = rank_.attribute_keys.next_number();
    for (auto& [code, added] : rank_.error_codes.added())
      all_.error_codes[code] = {added.error_class, added.text};
    for (const std::uintptr_t handle : rank_.handle_numbers.all()) all_.handle_numbers.push_back(handle);
    all_.last_context = rank_.process->engine().last_context();
    all_.fortran_info = address_of(static_cast<Object*>(rank_.fortran.info.get()));
    all_.fortran_true = rank_.fortran.true_value;
    all_.fortran_false = rank_.fortran.false_value;
    rank_.types.for_each_changed([this](Datatype& type) {
      all_.changed_types.push_back({address_of(type.handle()), type.name(), attributes_of(type)});
    });
    all_.world = state_of(*rank_.process->world());
    all_.self = state_of(*rank_.process->self());
    all_.no_file = scope_of(*rank_.no_file);
  }

  std::uint32_t number_of(const AttributeKey& key) {
    const auto [found, is_new] = key_numbers_.emplace(&key, static_cast<std::uint32_t>(all_.keys.size()));
    if (is_new) {
      all_.keys.push_back({.kind = static_cast<std::uint8_t>(key.kind()),
                           .copy = address_of(key.copy_function()),
                           .remove = address_of(key.remove_function()),
                           .extra_state = address_of(key.extra_state())});
    }
    return found->second;
  }

  std::uint32_t number_of(const MembersPointer& members) {
    const auto [found, is_new] =
        members_numbers_.emplace(members.get(), static_cast<std::uint32_t>(all_.members.size()));
    if (is_new) all_.members.push_back(*members);
    return found->second;
  }

  Rank& rank_;
  RankDescription all_;
  std::map<const AttributeKey*, std::uint32_t> key_numbers_;
  std::map<const Members*, std::uint32_t> members_numbers_;
};

}  // namespace

RankDescription describe(Rank& rank, std::span<Object* const> objects) {
  return Describer(rank).describe(objects);
}

}  // namespace weft::mpi
