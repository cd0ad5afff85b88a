#include "models/mpi/moving/restoring.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "models/mpi/datatype/describing/remaking.h"
#include "models/mpi/objects/attributes.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

template <class T>
T* pointer_to(Address address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

template <class T>
T& object_at(Address address) {
  return static_cast<T&>(*pointer_to<Object>(address));
}

// The address is that of the base class Object, with which each object begins.
template <class T, class... Arguments>
T& make_at(const ObjectDescription& place, Arguments&&... arguments) {
  T* const made = new (pointer_to<void>(place.address)) T(std::forward<Arguments>(arguments)...);
  return *made;
}

// All references but those of the program have been made again.
void restore_references(const ObjectDescription& description) {
  Object& object = *pointer_to<Object>(description.address);
  const std::uint32_t now = object.num_references();
  if (now < description.references) object.acquire(description.references - now);
  for (std::uint32_t surplus = description.references; surplus < now; ++surplus) object.release();
}

class Restorer {
 public:
  Restorer(Rank& rank, const RankDescription& all) : rank_(rank), all_(all) {}

  void restore() {
    make_shared_parts();
    set_state();
    for (const HandlerDescription& handler : all_.handlers) {
      make_at<ErrorHandler>(handler.object, static_cast<ObjectKind>(handler.caller),
                            pointer_to<void()>(handler.function));
    }
    for (const InfoDescription& info : all_.infos) make_at<Info>(info.object, info.pairs);
    for (const GroupDescription& group : all_.groups)
      make_at<Group>(group.object, members_.at(group.members));
    for (const OperationDescription& operation : all_.operations) make(operation);
    for (const DatatypeDescription& type : all_.datatypes) make(type);
    for (const CommunicatorDescription& communicator : all_.communicators) make(communicator);
    set_predefined_objects();
    for_each_object([](const ObjectDescription& object) { restore_references(object); });
  }

 private:
  template <class Visit>
  void for_each_object(const Visit& visit) const {
    const auto visit_all = [&visit](const auto& list) {
      for (const auto& one : list) visit(one.object);
    };
    // A communicator has references to handlers, and a datatype to others.
    visit_all(all_.communicators);
    visit_all(all_.datatypes);
    visit_all(all_.operations);
    visit_all(all_.groups);
    visit_all(all_.infos);
    visit_all(all_.handlers);
  }

  void make_shared_parts() {
    for (const KeyDescription& key : all_.keys) {
      keys_.push_back(Ref<AttributeKey>::adopt(
          new AttributeKey(static_cast<ObjectKind>(key.kind), pointer_to<void()>(key.copy),
                           pointer_to<void()>(key.remove), pointer_to<void>(key.extra_state))));
    }
    for (const Members& members : all_.members) members_.push_back(std::make_shared<Members>(members));
  }

  void set_state() {
    std::map<int, AttributeKeys::KeyEntry> numbered;
    for (const auto& [number, key] : all_.key_numbers) numbered[number].key = keys_.at(key);
    for (const int number : all_.freed_keys) numbered.at(number).is_freed = true;
    rank_.attribute_keys.replace(std::move(numbered), all_.next_key_number);
    std::map<int, ErrorCodes::Added> codes;
    for (const auto& [code, added] : all_.error_codes)
      codes[code] = {.error_class = added.first, .text = added.second};
    rank_.error_codes.replace(std::move(codes));
    rank_.handle_numbers.replace({all_.handle_numbers.begin(), all_.handle_numbers.end()});
    rank_.process->engine().set_last_context(all_.last_context);
    rank_.fortran.true_value = all_.fortran_true;
    rank_.fortran.false_value = all_.fortran_false;
  }

  void make(const OperationDescription& operation) {
    if (operation.large_function != 0) {
      make_at<ReductionOperator>(operation.object, pointer_to<MPI_User_function_c>(operation.large_function),
                                 operation.is_commutative);
    } else {
      make_at<ReductionOperator>(operation.object, pointer_to<MPI_User_function>(operation.function),
                                 operation.is_commutative);
    }
  }

  void make(const DatatypeDescription& type) {
    Recipe recipe(type.combiner, type.is_large ? CallForm::kLarge : CallForm::kSmall);
    recipe.integers = type.integers;
    recipe.addresses.assign(type.addresses.begin(), type.addresses.end());
    recipe.counts.assign(type.counts.begin(), type.counts.end());
    for (const Address part : type.parts) recipe.datatypes.emplace_back(datatype_of(part));
    Shape shape;
    if (const Error error = remake_shape(recipe, rank_.types, &shape); !error.ok())
      throw base::Error(base::StatusCode::kInternal,
                        base::format("a datatype cannot be made again: {}", error.text));
    Datatype& made = make_at<Datatype>(type.object, std::move(shape), std::move(recipe));
    if (type.is_committed) made.commit();
    made.set_name(type.name);
    set_attributes(made, type.attributes);
    if (is_requested(made)) rank_.types.keep_requested(made);
  }

  void make(const CommunicatorDescription& communicator) {
    Communicator::Groups groups;
    groups.local = members_.at(communicator.members);
    groups.rank = communicator.rank;
    if (communicator.is_inter) groups.remote = members_.at(communicator.remote_members);
    Communicator& made = make_at<Communicator>(
        communicator.object, rank_.process->engine(), communicator.context, std::move(groups),
        communicator.local_context, handler_of(communicator.state.scope.handler));
    if (communicator.has_topology) made.topology = std::make_shared<const Topology>(communicator.topology);
    set_communicator(made, communicator.state);
  }

  void set_predefined_objects() {
    if (all_.fortran_info != 0) rank_.fortran.info = Ref<Info>(object_at<Info>(all_.fortran_info));
    for (const ChangedTypeDescription& type : all_.changed_types) {
      Datatype& changed = datatype_of(type.handle);
      changed.set_name(type.name);
      set_attributes(changed, type.attributes);
    }
    set_communicator(*rank_.process->world(), all_.world);
    set_communicator(*rank_.process->self(), all_.self);
    set_scope(*rank_.no_file, all_.no_file);
  }

  void set_communicator(Communicator& communicator, const CommunicatorState& state) {
    set_scope(communicator, state.scope);
    communicator.info = state.info;
    communicator.set_call_numbers(state.call_numbers);
  }

  void set_scope(ErrorScope& scope, const ScopeDescription& state) {
    scope.set_error_handler(handler_of(state.handler));
    scope.set_name(state.name);
    set_attributes(scope, state.attributes);
  }

  void set_attributes(Object& object, const AttributeDescriptions& attributes) {
    for (const AttributeDescription& attribute : attributes) {
      object.attributes().add(keys_.at(attribute.key), attribute.number, pointer_to<void>(attribute.value));
    }
  }

  Ref<ErrorHandler> handler_of(const HandlerName& name) const {
    switch (static_cast<ErrorHandler::Action>(name.action)) {
      case ErrorHandler::Action::kReturn:
        return rank_.errors_return;
      case ErrorHandler::Action::kAbort:
        return rank_.errors_abort;
      case ErrorHandler::Action::kCall:
        return Ref<ErrorHandler>(object_at<ErrorHandler>(name.object));
      case ErrorHandler::Action::kEndJob:
        break;
    }
    return rank_.errors_are_fatal;
  }

  Datatype& datatype_of(Address handle) const {
    if (handle >= HandleNumbers::kFirst) return object_at<Datatype>(handle);
    Datatype* const predefined = rank_.types.find(pointer_to<std::remove_pointer_t<MPI_Datatype>>(handle));
    if (predefined != nullptr) return *predefined;
    base::refuse_claim(base::format("there is no predefined datatype {}", handle),
                       "do all PEs run the same version of Weft?");
  }

  static bool is_requested(const Datatype& type) {
    const int combiner = type.recipe().combiner;
    return combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
           combiner == MPI_COMBINER_F90_INTEGER;
  }

  Rank& rank_;
  const RankDescription& all_;
  std::vector<Ref<AttributeKey>> keys_;
  std::vector<MembersPointer> members_;
};

}  // namespace

void restore(Rank& rank, const RankDescription& all) { Restorer(rank, all).restore(); }

}  // namespace weft::mpi
