// One PE: its scheduler, its handlers, its futures and its collectives, over a machine.
//
// A Runtime owns its parts and is passed or held; nothing in Weft is global, so a test can make several in
// one process over the loopback machine. Threads: everything is called by the PE's thread, except
// post_from_any_thread().
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/runtime/block_pool.h"
#include "weft/runtime/future.h"
#include "weft/runtime/message.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/reduction.h"
#include "weft/runtime/task.h"
#include "weft/runtime/work.h"

namespace weft::machine {
class AmArrival;
class Machine;
}  // namespace weft::machine
namespace weft::memory {
class Memory;
}

namespace weft::runtime {

class Attachments;
class Quiescence;
class Reductions;

// A programming model's state on one PE; made by Runtime::install, destroyed with the runtime, after the
// machine's last completion.
class Model {
 public:
  virtual ~Model() = default;
  // Ends what the model itself keeps waiting, as the machine has just ended what it had in flight; the
  // coroutines that wait for it are still there.
  virtual void close() {}
};

// Called around every sleep of an idle PE, and now and then while it polls for a device, for instance to let
// other Python threads run.
struct IdleHook {
  virtual ~IdleHook() = default;
  virtual void before_sleep() = 0;
  // Returning false ends the job as interrupted.
  virtual bool after_sleep() = 0;
};

// Looks for what no message tells of: words in memory that other PEs of the host write.
struct Poller {
  virtual ~Poller() = default;
  // Called in every turn. Returns whether anything was done. May take itself off the list.
  virtual bool poll() = 0;
  // The PE is about to sleep, until a message comes: makes those that write send one. Returns false when
  // there is something to do already.
  virtual bool before_sleep() = 0;
};

// How a message with one buffer beside it travels: announced, with the buffer as a tagged message, or as one
// active message. To compare them; by itself the runtime takes the faster for the size.
enum class MessagingPath : std::uint8_t { kAuto, kTagged, kActive };

struct RuntimeOptions {
  // PEs of this job that share the host's processors; with more PEs than processors an idle PE gives way
  // sooner.
  int local_pes = 1;
  MessagingPath messaging_path = MessagingPath::kAuto;
};

class Runtime {
 public:
  // `machine` and `memory` are this runtime's alone and must outlive it; close() ends their operations.
  Runtime(machine::Machine& machine, memory::Memory& memory, const RuntimeOptions& options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  int pe() const { return pe_; }
  int num_pes() const { return num_pes_; }
  machine::Machine& machine() { return machine_; }
  memory::Memory& memory() { return memory_; }
  BlockPool& pool() { return pool_; }
  // Where this PE has memory of that kind: its own device, where what comes from device memory lands.
  memory::Place own_place(memory::Kind kind) const;

  // --- The scheduler
  void post(Work* work) { queue_.push(work); }
  void post(Work* work, std::int32_t priority) { queue_.push(work, priority); }
  // Any thread: `function` runs on the PE's thread, a sleeping PE wakes up.
  void post_from_any_thread(std::function<void()> function);
  // Posts `work` after `seconds`.
  void post_after(double seconds, Work* work);
  // Awaitable: co_await runtime.sleep(0.5).
  Future<> sleep(double seconds);

  // Runs until exit() or fail() took effect on this PE; the job's exit code.
  int run();
  // One turn: progress, some queued work, timers. Returns whether anything was done. For tests and embedders.
  bool step();
  bool stopped() const { return stopped_; }
  void set_idle_hook(IdleHook* hook) { idle_hook_ = hook; }
  // REQUIRES: not in the list, or in it, respectively.
  void start_polling(Poller* poller) { pollers_.push_back(poller); }
  void stop_polling(Poller* poller) { std::erase(pollers_, poller); }

  // --- Ending
  // Ends the job with `code` on every PE, from any PE; queued work is dropped, messages under way may be
  // lost.
  void exit(int code);
  // This PE cannot go on: run() returns 1 and failure() says why; Job then ends the other PEs.
  void fail(std::string message);
  // The same for an exception that nobody awaits; `where` names chare and entry method.
  void fail_unawaited(const std::exception_ptr& error, const std::string& where);
  const std::string& failure() const { return failure_; }
  bool exiting() const { return exiting_; }
  // Gives up suspended coroutines and queued work, and ends the machine's operations. Called by the
  // destructor.
  void close();

  // --- Messages
  // REQUIRES: the same handlers are set on every PE before run().
  void set_handler(HandlerId id, MessageHandler handler, void* context);
  // Has `poster` choose where the attachments of such messages land; it gets the handler's context. Without
  // one the runtime allocates memory of the sender's kind.
  void set_poster(HandlerId id, MessagePoster poster, MessageDropped dropped = nullptr);
  // Never blocks; to this PE too it goes through the queue. What is attached is sent in place: it must not
  // change before it is given back, or before the message's report_sending() operation ends.
  void send(int pe, MessagePtr message);
  // To every PE, this one included, down a spanning tree rooted here. What is attached lands on each other PE
  // in the runtime's memory and is sent on from there, see Message::attach(); Error where the handler has a
  // poster.
  void broadcast(MessagePtr message);
  void deliver(const Target& target, std::span<const std::byte> result);

  // --- Coroutines, futures, collectives
  // Starts `task`; an exception that leaves it ends the job, naming `where`.
  void spawn(Task<> task, std::string where);
  // For models that end a coroutine their own way: links and starts it.
  void start_detached(DetachedTask* task, std::coroutine_handle<> coroutine);
  // Has `task` abandoned when the runtime closes, unless it has come to its end by then.
  void list_pending(DetachedTask* task) { task->link(detached_); }

  template <class T = void>
  Future<T> make_future() {
    return Future<T>(*this);
  }
  // Ready when no message is under way or queued anywhere and every PE is idle. Counts messages and channel
  // transfers, not timers and not coroutines that wait for something else.
  Future<> quiescence();
  Reductions& reductions() { return *reductions_; }
  // Quiescence counters: every counted thing that is sent must be processed once, on any PE.
  void count_sent() { ++sent_; }
  void count_processed() { ++processed_; }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t processed() const { return processed_; }
  bool queue_empty() const { return queue_.empty(); }

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
  friend class Attachments;
  friend class FutureState;
  friend struct MessageRelease;
  friend FutureState* find_exported_future(Runtime& runtime, std::uint64_t id);
  friend class OperationState;
  struct Parts;

  void add_model(std::type_index type, std::unique_ptr<Model> model);
  Model& find_model(std::type_index type);
  // Sends it on to this PE's children in its tree; from then on it is a message to this PE only.
  void forward_broadcast(Message& message);
  void send_with_buffers(int pe, MessagePtr message);
  // These take over one share of the message; a MessagePtr would cost each message more.
  void send_active_message(int pe, std::span<const std::byte> header, Message* message);
  void enqueue(Message* message);
  void check_sent(int pe, const base::Status& status);
  void receive_arrival(machine::AmArrival* arrival);
  void receive_with_buffer(machine::AmArrival* arrival);
  void finish_receive(MessagePtr message, const base::Status& status);
  void receive(MessagePtr message);
  void dispatch(MessagePtr message);
  bool run_queue();
  bool read_mail();
  bool expire_timers();
  bool run_pollers();
  bool may_sleep();
  void idle();
  void rest(auto sleep);
  void drop_queue();
  std::uint64_t export_future(FutureState* state);
  void set_exported_future(MessagePtr message);

  machine::Machine& machine_;
  memory::Memory& memory_;
  int pe_;
  int num_pes_;
  WorkQueue queue_;
  BlockPool pool_;
  std::uint64_t sent_ = 0;
  std::uint64_t processed_ = 0;
  std::uint64_t outstanding_sends_ = 0;
  bool exiting_ = false;
  bool stopped_ = false;
  bool closed_ = false;
  int exit_code_ = 0;
  int idle_rounds_ = 0;
  std::string failure_;
  IdleHook* idle_hook_ = nullptr;
  std::vector<Poller*> pollers_;
  DetachedTask* detached_ = nullptr;
  std::unique_ptr<Parts> parts_;
  std::unique_ptr<Reductions> reductions_;
  std::unique_ptr<Quiescence> quiescence_;
};

}  // namespace weft::runtime
