// Model, the interface of a programming model to the runtime. An object is the model's state on one PE.
//
// A model is a class M derived from Model, with
//
//   static constexpr ModelNeeds kNeeds{.name = "counter", .num_handlers = 2, .uses_tags = true};
//   M(Runtime& runtime, const ModelRange& range);
//
// Runtime::install<M>() allots it a range of message handlers and, if it uses tags, a type of tags. Ranges
// follow the order of installation, which is the same on all PEs: the job compares names and ranges at its
// start. In its constructor a model sets the handlers of its range, before any message can arrive.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/base/status.h"
#include "weft/runtime/handler_id.h"
#include "weft/runtime/observer.h"
#include "weft/runtime/wait_list.h"

namespace weft::runtime {

class FutureState;
class OperationState;

struct ModelNeeds {
  std::string_view name;  // one word, unique among the models of the job
  HandlerId num_handlers = 0;
  bool uses_tags = false;
};

// The handlers and tags that a model may use, the same on every PE.
struct ModelRange {
  HandlerId first_handler = 0;
  HandlerId num_handlers = 0;
  // For machine::make_tag(); the model lays out the other 60 bits. 0: the model does not use tags.
  std::uint8_t tag_type = 0;
};

// A setting that a model reads when the job starts.
struct ModelOption {
  std::string_view variable;  // of the environment: "WEFT_CHANNEL_PATH"
  std::string_view values;    // for people: "auto or tagged"
  // Returns false for a value that it does not know.
  std::function<bool(std::string_view value)> set;
};

// Whether an element can move in this turn, as far as a model is concerned.
enum class MoveState : std::uint8_t {
  kReady,
  kWaits,  // the model calls Chares::move_again() when it may be ready
  kBusy,   // it cannot move now, and the model does not wait
};

class Model {
 public:
  virtual ~Model() = default;

  // Ends operations that wait in the model. The machine has ended those in flight already. Coroutines that
  // await them still exist. The model is destroyed with the runtime, in the reverse order of installation.
  virtual void close() {}

  // Names and values that must be equal on all PEs. The names appear in error messages. Called once, after
  // all models are installed.
  virtual std::vector<std::pair<std::string, std::string>> fingerprint() const { return {}; }
  // Called once, before the fingerprint is taken.
  virtual std::vector<ModelOption> options() { return {}; }
  // The element's collection has been destroyed. Entry methods of the element that wait have still to end, so a model ends
  // what they wait for. The element is freed with the last copy of `element_itself`: a model keeps one while operations may
  // use the element's memory.
  virtual void element_ends(ElementId element, const std::shared_ptr<void>& element_itself) {
    static_cast<void>(element);
    static_cast<void>(element_itself);
  }
  // Later, once: no entry method of that element waits any more, and only models keep copies of it.
  virtual void element_has_ended(ElementId element) { static_cast<void>(element); }
  // Adds what the model's objects on this PE wait for, for a report, besides what `waits` has been told.
  virtual void list_waits(WaitList& waits) const { static_cast<void>(waits); }
  // A coroutine awaits that operation, or that future, of the model: completes what `wait` says of it, and tells `waits` its object.
  // Returns false if it is not one of the model.
  virtual bool describe_operation(const OperationState& operation, Wait& wait, WaitList& waits) const {
    static_cast<void>(operation);
    static_cast<void>(wait);
    static_cast<void>(waits);
    return false;
  }
  virtual bool describe_future(const FutureState& future, Wait& wait) const {
    static_cast<void>(future);
    static_cast<void>(wait);
    return false;
  }
  // Lines for `weft run --stats`, each a sentence about this PE; called when the job has ended.
  virtual std::vector<std::string> report() const { return {}; }
  // Fails with the reason if the element cannot move to another PE now, as far as this model is concerned.
  virtual base::Status obstacle_to_moving(ElementId element) const {
    static_cast<void>(element);
    return {};
  }
  // Fails if the element cannot be saved in a checkpoint, besides obstacle_to_moving().
  virtual base::Status obstacle_to_saving(ElementId element) const {
    static_cast<void>(element);
    return {};
  }

  // Fails if the element cannot be removed while its collection lives, besides obstacle_to_saving().
  virtual base::Status obstacle_to_removing(ElementId element) const {
    static_cast<void>(element);
    return {};
  }

  // --- An element that moves. The calls come in this order; prepare_to_move() may come several times.

  // The element is to move, and none of its entry methods runs or waits. A model with messages under way to the element
  // has them stop. `may_wait`: whether the model may wait for operations that the program has started; else it returns
  // kBusy for them.
  virtual MoveState prepare_to_move(ElementId element, bool may_wait) {
    static_cast<void>(element);
    static_cast<void>(may_wait);
    return MoveState::kReady;
  }
  // The element does not move now. Undoes prepare_to_move(), also if that was not called.
  virtual void stay(ElementId element) { static_cast<void>(element); }
  // Sizes or packs what the model keeps of the element, in the turn in which it is ready. Changes nothing.
  virtual void pack_moving(ElementId element, Pup& p) {
    static_cast<void>(element);
    static_cast<void>(p);
  }
  // The element is not on this PE any more. It is freed with the last copy of `element_itself`.
  virtual void element_has_moved(ElementId element, const std::shared_ptr<void>& element_itself) {
    static_cast<void>(element);
    static_cast<void>(element_itself);
  }
  // On the new PE, before the element is made: takes what pack_moving() has packed there, which is checked. Throws Error
  // if it does not fit. If the collection has been destroyed, element_ends() follows, with a null pointer.
  virtual void unpack_moving(ElementId element, Pup& p) {
    static_cast<void>(element);
    static_cast<void>(p);
  }
};

}  // namespace weft::runtime
