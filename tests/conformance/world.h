// The tools of the conformance suite: a World of PEs in one process, operations that insist on
// completing exactly once, and buffers of any memory kind whose bytes a test can set and look at.
//
// Nothing here sleeps: until() calls progress() on every machine in turn, for a minute at most.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "weft/base/completion.h"
#include "weft/memory/buffer.h"

#include "machine/machine.h"
#include "memory/memory.h"
#include "tests/conformance/networks.h"
#include "tests/support/pattern.h"

namespace weft::conformance {

// The machines that every test runs on: a new one is one line here. What follows a dot says how it is set up:
//
//     late         no send completes before its message was received
//     addressing   addresses kind cuda, whose driver is a stand-in
//     staged       sends all device memory through host memory
inline constexpr std::string_view kApart = "ucx-apart";  // over TCP, as if each PE were on a host of its own
inline const std::vector<std::string> kMachines = {
    "loopback",
    "loopback.late",
    "ucx",
    std::string(kApart),
};
// Machines that differ from these on kind cuda only.
inline const std::vector<std::string> kCudaMachines = {"ucx.staged"};
// The machines that run over the stand-in driver. UCX addresses cuda only with a real driver.
inline const std::vector<std::string> kStandInMachines = {"loopback", "loopback.late", "loopback.addressing",
                                                          "loopback.addressing.staged", "ucx.staged"};

// Another CUDA driver than the machine's: the environment variable that names its file. Kind cuda is then the
// only one that is tested.
inline constexpr const char* kStandInDriver = "WEFT_TEST_CUDA_DRIVER";

// Sizes of messages and copies below and above every machine's eager limit.
inline constexpr std::size_t kSizes[] = {1, 8, 1000, 4096, 65'536, 1'000'003};
inline constexpr std::size_t kSmall = 64;
inline constexpr std::size_t kLarge = 300'000;

using Param = std::tuple<std::string, memory::Kind>;
std::string param_name(const ::testing::TestParamInfo<Param>& info);

// A started operation. Fails the test when it completes twice, from inside its start call, or never.
class CheckedOperation : public base::Completion {
 public:
  CheckedOperation();
  ~CheckedOperation();
  CheckedOperation(const CheckedOperation&) = delete;
  CheckedOperation& operator=(const CheckedOperation&) = delete;

  // Give it what the start function returned: op.start(machine.tag_send(..., &op)).
  CheckedOperation& start(base::Status status);
  bool done() const { return state_ == State::kDone; }
  bool was_pending() const { return was_pending_; }
  const base::Status& status() const { return status_; }
  // Known for operations that were pending.
  std::size_t size_bytes() const { return size_bytes_; }

  // Called on completion, after which the CheckedOperation may be reused by another start().
  std::function<void()> then;

 private:
  enum class State { kIdle, kPending, kDone };
  static void on_complete(base::Completion* self, base::Status status, std::size_t size_bytes);

  State state_ = State::kIdle;
  int calls_ = 0;
  bool was_pending_ = false;
  base::Status status_;
  std::size_t size_bytes_ = 0;
};

using test_support::pattern;

class World {
 public:
  World(const std::string& machine_name, int num_pes);
  ~World();

  machine::Machine& machine(int pe) {
    networks_.enter(pe);
    return *machines_[static_cast<std::size_t>(pe)];
  }
  memory::Memory& memory(int pe) { return *memories_[static_cast<std::size_t>(pe)]; }
  int num_pes() const { return static_cast<int>(machines_.size()); }
  // Ends a PE early.
  void destroy(int pe) {
    networks_.enter(pe);
    machines_[static_cast<std::size_t>(pe)].reset();
  }

  void progress();
  // Whether `condition` came true within a minute.
  bool until(const std::function<bool()>& condition);
  bool finish(CheckedOperation& operation) {
    return until([&] { return operation.done(); });
  }
  // The same of all `operations`, which may become more meanwhile. Those that are done are not looked at again.
  bool finish_all(const auto& operations) {
    std::size_t num_done = 0;
    return until([&] {
      while (num_done < operations.size() && operations[num_done].done()) ++num_done;
      return num_done == operations.size();
    });
  }

  void on_message(int pe, machine::AmId id, std::function<void(machine::AmArrival&)> handler);

  // A buffer that lives as long as the world.
  memory::Buffer buffer(int pe, memory::Kind kind, std::size_t size_bytes);
  memory::Buffer buffer(int pe, memory::Kind kind, std::span<const std::byte> contents);
  void write(int pe, const memory::Buffer& buffer, std::span<const std::byte> contents);
  std::vector<std::byte> read(int pe, const memory::Buffer& buffer, std::size_t size_bytes);
  std::vector<std::byte> read(int pe, const memory::Buffer& buffer) {
    return read(pe, buffer, buffer.size_bytes);
  }

 private:
  using Handler = std::function<void(machine::AmArrival&)>;

  void copy(int pe, const memory::Buffer& to, const memory::ConstBuffer& from);

  Networks networks_;
  std::vector<std::unique_ptr<memory::Memory>> memories_;
  std::vector<std::pair<int, memory::Buffer>> buffers_;
  std::deque<Handler> handlers_;
  std::vector<std::unique_ptr<machine::Machine>> machines_;
};

// A test on one machine with buffers of one kind.
class ConformanceTest : public ::testing::TestWithParam<Param> {
 protected:
  World make_world(int num_pes) { return World(std::get<0>(GetParam()), num_pes); }
  memory::Kind kind() const { return std::get<1>(GetParam()); }
};

std::vector<memory::Kind> all_kinds();
// The kinds that this process can use; a test of its own (kinds_test.cpp) says which are missing.
std::vector<memory::Kind> usable_kinds();

// For every test file: INSTANTIATE_TEST_SUITE_P(All, SuiteName, every_machine_and_kind(), param_name)
std::vector<Param> machines_and_kinds();
inline auto every_machine_and_kind() { return ::testing::ValuesIn(machines_and_kinds()); }
// Without those whose messages need their sender's progress: a thread that owns both PEs cannot sleep as one.
std::vector<Param> machines_and_kinds_of_one_host();
// For what does not depend on the kind.
inline auto every_machine() {
  return ::testing::Combine(::testing::ValuesIn(kMachines), ::testing::Values(memory::Kind::kHost));
}

}  // namespace weft::conformance
