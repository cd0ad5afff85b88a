// One PE: its scheduler, its messages, its futures and its collectives, over a machine.
//
// A Runtime owns its parts and is passed or held; nothing in Weft is global, so a test can make several in
// one process over the loopback machine. Threads: everything is called by the PE's thread, except
// post_from_any_thread(), fail() and fail_unawaited().
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "weft/runtime/future.h"
#include "weft/runtime/hang_settings.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/metering/processor_share.h"
#include "weft/runtime/model.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/program_activity.h"
#include "weft/runtime/reduction.h"
#include "weft/runtime/scheduler.h"
#include "weft/runtime/watermarks.h"

namespace weft::runtime {

class FutureTable;
class HangWatch;
class Quiescence;
class Reductions;
class Termination;

struct RuntimeOptions {
  // PEs of this job on this host.
  int local_pes = 1;
  // If PEs share processors, an idle one gives way sooner.
  ProcessorShare processor_share;
  MessagingPath messaging_path = MessagingPath::kAuto;
  // All 0: Watermarks::for_job().
  Watermarks watermarks;
  // A number for the host of each PE, the same on all PEs. Empty: all are on one host.
  std::vector<int> host_of_pe;
};

class Runtime final : public Messenger {
 public:
  // `machine` and `memory` are this runtime's alone and must outlive it; close() ends their operations.
  Runtime(machine::Machine& machine, memory::Memory& memory, const RuntimeOptions& options = {});
  ~Runtime();

  // Whether all PEs of the job are on one host.
  bool is_on_one_host() const { return is_on_one_host_; }

  // --- Ending
  // Ends the job with `code` on every PE, from any PE; queued work is dropped, messages under way may be
  // lost.
  void exit(int code);
  // Gives up suspended coroutines and queued work, and ends the machine's operations. Called by the
  // destructor.
  void close();

  // --- Futures and collectives
  template <class T = void>
  Future<T> make_future() {
    return Future<T>(*this);
  }
  // Awaitable: co_await runtime.sleep(0.5).
  Future<> sleep(double seconds);
  // Ready when no message is under way or queued anywhere and every PE is idle. Counts messages and channel
  // transfers, not timers and not coroutines that wait for something else.
  Future<> quiescence();
  // Ready when the program cannot go on any more, on any PE: the job is quiescent, and nothing else can happen that a PE knows to wait
  // for: no quiescence or other operation of note_uncounted(), no copy, no call that waits for room, and nothing that a
  // ProgramActivity knows. Polls once in a second or so. Throws Error(kInvalidArgument) on another PE than 0.
  Future<> standstill();
  // An operation for which the program may wait, and whose messages are not counted, is over when `end` is ready. REQUIRES: `end` belongs
  // to this PE.
  void note_uncounted(const Future<>& end);
  // Sets the object that reports what the program does besides messages; null for none. It must live until another call or the end.
  void set_program_activity(ProgramActivity* activity);
  // From now on the job says on stderr when its program hangs. Throws Error(kInvalidArgument) on another PE than 0.
  void watch_for_hangs(const HangSettings& settings);
  // From now on `listener` is called with each report of a program that hangs, in place of the text on stderr; null for none. For tests.
  void set_hang_listener(std::function<void(const std::string& report)> listener);
  // How often the watch for hangs of this PE has asked all PEs whether they are idle; 0 on another PE than 0.
  std::uint64_t num_hang_looks() const;
  // Calls `done` with lines about what all PEs wait for, within about a second. Does nothing while another report is under way. Throws as
  // watch_for_hangs().
  // `hangs`: the causes are named, as if nothing could change any more.
  void report_waits(bool hangs, std::function<void(const std::string& report)> done);
  Reductions& reductions() { return *reductions_; }

  // --- Models
  // Makes the model's state on this PE, M(Runtime&, const ModelRange&), see weft/runtime/model.h. Called
  // once per model, before run(), in the same order on every PE. Throws Error if the model's name is taken or
  // no handlers or tags are left for it.
  template <class M>
  M& install() {
    auto model = std::make_unique<M>(*this, allot(M::kNeeds));
    M& reference = *model;
    add_model(typeid(M), M::kNeeds, std::move(model));
    return reference;
  }
  // REQUIRES: install<M>() was called.
  template <class M>
  M& model() {
    return static_cast<M&>(find_model(typeid(M)));
  }
  // An object of a layer below the models that one of them owns and others use: the owner offers it in its constructor, and it lives
  // until the models are destroyed.
  template <class T>
  void offer(T& shared) {
    offered_.emplace_back(typeid(T), &shared);
  }
  // REQUIRES: an installed model has offered one.
  template <class T>
  T& offered() {
    return *static_cast<T*>(find_offered(typeid(T)));
  }
  struct InstalledModel {
    std::type_index type;
    ModelNeeds needs;
    ModelRange range;
    std::unique_ptr<Model> model;
  };
  // In the order of installation.
  std::span<const InstalledModel> models() const { return models_; }
  // Fails if that element cannot move to another PE now, with the reason of the first model that it is busy in.
  base::Status obstacle_to_moving(ElementId element) const;
  // As obstacle_to_moving(), for saving the element in a checkpoint now.
  base::Status obstacle_to_saving(ElementId element) const;
  // As obstacle_to_moving(), for removing the element now while its collection lives.
  base::Status obstacle_to_removing(ElementId element) const;
  // Model::prepare_to_move() of all models: kBusy if one is busy, and then all stay; else kWaits if one waits.
  MoveState prepare_to_move(ElementId element, bool may_wait) const;
  // Model::stay() of all models.
  void stay(ElementId element) const;

 private:
  // The range that the next model gets.
  ModelRange allot(const ModelNeeds& needs) const;
  void add_model(std::type_index type, const ModelNeeds& needs, std::unique_ptr<Model> model);
  Model& find_model(std::type_index type);
  void* find_offered(std::type_index type);

  std::vector<InstalledModel> models_;
  std::vector<std::pair<std::type_index, void*>> offered_;
  std::unique_ptr<FutureTable> futures_;
  std::unique_ptr<Termination> termination_;
  std::unique_ptr<Reductions> reductions_;
  std::unique_ptr<Quiescence> quiescence_;
  std::unique_ptr<HangWatch> hang_watch_;
  const bool is_on_one_host_;
};

}  // namespace weft::runtime
