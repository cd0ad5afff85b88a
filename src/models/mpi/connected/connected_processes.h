// ConnectedProcesses: the messages between this process and those of other jobs, its ports, and the calls that wait there.
//
// It exists from the first call on that may connect the process. Threads: the PE's; the links call their receiver on a thread of their
// own, which posts to the PE's. All that a peer sends is checked.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/runtime/runtime.h"

#include "collective/engine.h"
#include "machine/links/links.h"
#include "models/mpi/outside/outsiders.h"
#include "models/mpi/p2p/point_to_point.h"

namespace weft::mpi {

class ConnectedProcesses final : private machine::Links::Receiver,
                                 private OutsideWay,
                                 private collective::OutsideMembers {
 public:
  // Raise it with every change of what connected processes send one another, with what their algorithms send among it.
  static constexpr std::uint32_t kOutsideRevision = 2;

  // Opens the socket of this process. Throws Error if the system has no resources left. REQUIRES: the job of `engine` has a name.
  ConnectedProcesses(runtime::Runtime& runtime, PointToPoint& engine);
  ~ConnectedProcesses();
  // What has been sent leaves, and peers learn that this process ends. No message comes afterwards.
  void close();

  // --- Ports
  // A group that calls at a port: its first process, the number of its call, and its members.
  struct Caller {
    ProcessName root;
    std::uint64_t call = 0;
    ProcessNames group;
  };
  struct Port {
    std::deque<Caller> callers;
    // The only process that will call, if that is known.
    std::optional<ProcessName> awaited;
    // Why none will call: the spawned job has ended, or the awaited process.
    std::optional<std::string> ended;
  };
  std::string open_port();
  // False if this process has no such port. Those that wait there are refused.
  bool close_port(std::string_view name);
  // Null if this process has no such port. It stays where it is until it is closed.
  Port* find_port(std::string_view name);
  // The process that has `caller` open will call at the port, and no other one. Returns false if the process is not there, or if
  // `caller` is no port.
  bool await_caller(std::string_view port, std::string_view caller);
  // Lets the caller continue with that context and this group. Returns false if the caller has ended.
  bool accept(const Caller& caller, std::uint64_t context, const ProcessNames& group);
  // The caller's MPI_Comm_connect fails.
  void refuse(const Caller& caller);
  // A communicator with these processes has been made. If one of them has ended meanwhile, this job ends, as it would if that one ended
  // now.
  void watch(const ProcessNames& group);
  // Processes that have ended without MPI_Finalize.
  std::size_t num_lost() const { return lost_.size(); }

  // --- Calls
  struct Call {
    enum class State : std::uint8_t { kWaits, kAccepted, kRefused };
    State state = State::kWaits;
    ProcessName at;
    std::uint64_t context = 0;
    ProcessNames group;  // that has accepted
  };
  // Calls at a port of another process. The outcome is in call(number). Throws Error if the port is none, or its process is not there,
  // or is in the group.
  std::uint64_t call(std::string_view port, const ProcessNames& group);
  const Call& call(std::uint64_t number) const { return calls_.at(number); }
  void forget_call(std::uint64_t number) { calls_.erase(number); }
  // The address of this process for the launcher.
  std::string address() const { return machine::link_address(own_); }

 private:
  // The types of messages behind those of OutsideWay. kEnded comes from the launcher.
  // kAwaits says that a call is awaited.
  enum Message : std::uint32_t { kStep = 3, kCall, kAccepted, kRefused, kEnded, kAwaits };

  void send(const ProcessName& to, Type type, std::span<const std::byte> first,
            std::span<const std::byte> second, std::span<const std::byte> third) override;
  void send_step(int number, std::span<const std::byte> header, std::span<const std::byte> blocks) override;
  void arrived(const ProcessName& from, std::uint32_t type, std::vector<std::byte> bytes) override;
  void gone(const ProcessName& from, bool is_closed) override;
  void failed(const std::string& reason) override;

  // Any thread. The function runs in the PE's thread; an exception ends the job.
  void post(std::function<void()> function);

  // In the PE's thread.
  void handle(const ProcessName& from, std::uint32_t type, std::span<const std::byte> bytes);
  void on_call(const ProcessName& from, std::span<const std::byte> bytes);
  void on_answer(const ProcessName& from, bool is_accepted, std::span<const std::byte> bytes);
  void on_ended(std::span<const std::byte> bytes);
  void on_gone(const ProcessName& from, bool is_closed);
  void note_loss(const ProcessName& process);
  // The group of a message. Refuses it if it cannot be that of its sender.
  ProcessNames group_in(const ProcessName& from, std::span<const std::byte> bytes) const;
  void send_or_drop(const ProcessName& to, std::uint32_t type,
                    std::initializer_list<std::span<const std::byte>> parts);

  runtime::Runtime& runtime_;
  runtime::Future<> end_;  // of what other jobs may send, for which an idle job may wait
  PointToPoint& engine_;
  Outsiders& outsiders_;
  const ProcessName own_;
  std::map<std::uint64_t, Port> ports_;
  std::map<std::uint64_t, Call> calls_;
  std::uint64_t last_call_ = 0;
  // Processes that have ended without MPI_Finalize.
  std::set<ProcessName> lost_;
  // Ends the job if one of them is still connected.
  struct LossCheck : runtime::Work {
    ConnectedProcesses* owner = nullptr;  // null unless the timer runs
  };
  LossCheck loss_check_;
  runtime::Scheduler::TimerId loss_timer_;
  std::unique_ptr<machine::Links> links_;  // the last member: its thread uses the others
};

}  // namespace weft::mpi
