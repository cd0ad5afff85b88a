// A whole job in one process and on one thread: several runtimes over the loopback machine, each with every
// model, that take turns until the job ends. Deterministic: the turns go round robin.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weft/weft.h"

#include "collective/engine.h"
#include "machine/factory/factory.h"
#include "machine/machine.h"
#include "memory/kinds/emulated/emulated_options.h"
#include "memory/kinds/memory_options.h"
#include "memory/memory.h"
#include "models/channel/channels.h"
#include "runtime/losses/losses.h"

namespace weft::testing {

class InProcessJob {
 public:
  explicit InProcessJob(int num_pes, std::string_view machine = "loopback",
                        const runtime::RuntimeOptions& options = {},
                        machine::StagingMode staging = machine::StagingMode::kDevice,
                        int pe_without_devices = -1,
                        std::chrono::nanoseconds device_timeout = memory::kDeviceTimeout,
                        bool outlives_losses = false)
      : is_loopback_(machine == "loopback"), is_killed_(static_cast<std::size_t>(num_pes)) {
    std::vector<memory::Memory*> memories;
    for (int pe = 0; pe < num_pes; ++pe) {
      memory::MemoryOptions memory_options;
      memory_options.device_timeout = device_timeout;
      if (pe == pe_without_devices) memory_options.of<memory::EmulatedOptions>().num_devices = 0;
      memories_.push_back(std::make_unique<memory::Memory>(memory_options));
      memories.push_back(memories_.back().get());
    }
    auto machines = machine::make_in_process(machine, memories, staging);
    if (!machines.ok()) throw std::runtime_error(machines.status().to_string());
    machines_ = std::move(machines).value();
    for (auto& one : machines_) {
      memory::Memory& memory = *memories_[static_cast<std::size_t>(one->pe())];
      runtimes_.push_back(std::make_unique<Runtime>(*one, memory, options));
      if (outlives_losses) {
        runtimes_.back()->losses().survive();
        runtimes_.back()->set_observer(nullptr);
      }
      runtimes_.back()->install<collective::Engine>();
      runtimes_.back()->install<chare::Chares>();
      runtimes_.back()->install<channel::Channels>();
    }
  }

  // A job that loses PEs and goes on.
  static InProcessJob outliving_losses(int num_pes) {
    return InProcessJob(num_pes, "loopback", {}, machine::StagingMode::kDevice, -1, memory::kDeviceTimeout,
                        true);
  }

  ~InProcessJob() {
    // All machines close before any is destroyed: they may point at one another.
    for (auto& runtime : runtimes_) runtime->close();
    runtimes_.clear();
  }

  Runtime& runtime(int pe) { return *runtimes_.at(static_cast<std::size_t>(pe)); }
  memory::Memory& memory(int pe) { return *memories_.at(static_cast<std::size_t>(pe)); }
  int num_pes() const { return static_cast<int>(runtimes_.size()); }

  // PE `pe` does nothing any more; tell() lets another PE know.
  void kill(int pe) { is_killed_.at(static_cast<std::size_t>(pe)) = true; }
  void tell(int pe, int lost) { runtime(pe).tell_loss(lost, "it was killed"); }
  void lose(int lost) {
    kill(lost);
    for (int pe = 0; pe < num_pes(); ++pe) {
      if (!is_killed_[static_cast<std::size_t>(pe)]) tell(pe, lost);
    }
  }

  // Runs `main` on PE 0 until the job has ended everywhere. Returns what failed first, empty if nothing did.
  std::string run(std::function<Task<>(Runtime&)> main) {
    auto whole = [](Runtime& runtime, std::function<Task<>(Runtime&)> body) -> Task<> {
      co_await body(runtime);
      runtime.exit(0);
    };
    runtime(0).spawn(whole(runtime(0), std::move(main)), "main on PE 0");
    return run_until([this] {
      for (auto& runtime : runtimes_) {
        if (is_running(*runtime)) return false;
      }
      return true;
    });
  }

  // Takes turns until `done`. A job that does nothing any more but is not done has hung, which is a failure.
  std::string run_until(const std::function<bool()>& done) {
    constexpr int kHungTurns = 2'000'000;  // timers and quiescence waves leave idle turns in between
    int idle_turns = 0;
    std::chrono::steady_clock::time_point idle_since;
    for (;;) {
      for (auto& runtime : runtimes_) {
        if (!runtime->failure().empty()) return runtime->failure();
      }
      if (done()) return "";
      bool busy = false;
      for (auto& runtime : runtimes_) {
        if (is_running(*runtime)) busy |= runtime->step();
      }
      idle_turns = busy ? 0 : idle_turns + 1;
      if (idle_turns == 1) idle_since = std::chrono::steady_clock::now();
      if (idle_turns > kHungTurns && !may_wait_for_a_thread(idle_since)) {
        return "the job hangs: nothing is left to do and it has not ended";
      }
    }
  }

 private:
  bool is_running(const Runtime& runtime) const {
    return !runtime.stopped() && !is_killed_[static_cast<std::size_t>(runtime.pe())];
  }
  // UCX's own thread hands the first message to a PE that has not sent one, so idle turns alone show no hang.
  bool may_wait_for_a_thread(std::chrono::steady_clock::time_point idle_since) const {
    if (is_loopback_) return false;
    std::this_thread::yield();
    return std::chrono::steady_clock::now() - idle_since < std::chrono::seconds(20);
  }

  const bool is_loopback_;
  std::vector<bool> is_killed_;
  std::vector<std::unique_ptr<memory::Memory>> memories_;
  std::vector<std::unique_ptr<machine::Machine>> machines_;
  std::vector<std::unique_ptr<Runtime>> runtimes_;
};

}  // namespace weft::testing
