// One PE: its scheduler, its messages, its futures and its collectives, over a machine.
//
// A Runtime owns its parts and is passed or held; nothing in Weft is global, so a test can make several in
// one process over the loopback machine. Threads: everything is called by the PE's thread, except
// post_from_any_thread().
#pragma once

#include <memory>
#include <typeindex>
#include <utility>
#include <vector>

#include "weft/runtime/future.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/reduction.h"
#include "weft/runtime/scheduler.h"

namespace weft::runtime {

class Quiescence;
class Reductions;
class Termination;

// A programming model's state on one PE; made by Runtime::install, destroyed with the runtime, after the
// machine's last completion.
class Model {
 public:
  virtual ~Model() = default;
  // Ends what the model itself keeps waiting, as the machine has just ended what it had in flight; the
  // coroutines that wait for it are still there.
  virtual void close() {}
};

struct RuntimeOptions {
  // PEs of this job that share the host's processors; with more PEs than processors an idle PE gives way
  // sooner.
  int local_pes = 1;
  MessagingPath messaging_path = MessagingPath::kAuto;
};

class Runtime final : public Messenger {
 public:
  // `machine` and `memory` are this runtime's alone and must outlive it; close() ends their operations.
  Runtime(machine::Machine& machine, memory::Memory& memory, const RuntimeOptions& options = {});
  ~Runtime();

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
  Reductions& reductions() { return *reductions_; }

  // --- Models
  // Makes the model's state on this PE, M(Runtime&); once, before run(), on every PE.
  template <class M>
  M& install() {
    auto model = std::make_unique<M>(*this);
    M& reference = *model;
    add_model(typeid(M), std::move(model));
    return reference;
  }
  // REQUIRES: install<M>() was called.
  template <class M>
  M& model() {
    return static_cast<M&>(find_model(typeid(M)));
  }

 private:
  void add_model(std::type_index type, std::unique_ptr<Model> model);
  Model& find_model(std::type_index type);

  std::vector<std::pair<std::type_index, std::unique_ptr<Model>>> models_;
  std::unique_ptr<FutureTable> futures_;
  std::unique_ptr<Termination> termination_;
  std::unique_ptr<Reductions> reductions_;
  std::unique_ptr<Quiescence> quiescence_;
};

}  // namespace weft::runtime
