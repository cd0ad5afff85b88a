// Signals that a job handles while it runs: those that end it, and the one that asks what it waits for.
//
// Threads: made and destroyed on the PE's thread with the GIL; the handlers run anywhere.
#pragma once

#include <atomic>
#include <csignal>

#include "weft/job/job.h"

#include "machine/machine.h"
#include "support/errors.h"
#include "support/support.h"

namespace weft::python {

// Makes a signal that ends the job wake a sleeping PE: one that comes just before the sleep would otherwise be noticed after it.
// While it lives, Python's handler of the signal is called by ours, which then wakes the machine (an async-signal-safe write).
template <int Signal>
class WakingSignal {
 public:
  explicit WakingSignal(machine::Machine& machine) {
    if (sigaction(Signal, nullptr, &python_action) != 0 || (python_action.sa_flags & SA_SIGINFO) != 0 ||
        python_action.sa_handler == SIG_DFL || python_action.sa_handler == SIG_IGN) {
      return;
    }
    to_wake.store(&machine);
    struct sigaction ours = python_action;
    ours.sa_handler = &WakingSignal::handle;
    installed_ = sigaction(Signal, &ours, nullptr) == 0;
  }
  ~WakingSignal() {
    struct sigaction current{};
    if (installed_ && sigaction(Signal, nullptr, &current) == 0 &&
        current.sa_handler == &WakingSignal::handle) {
      sigaction(Signal, &python_action, nullptr);
    }
    to_wake.store(nullptr);
  }
  WakingSignal(const WakingSignal&) = delete;
  WakingSignal& operator=(const WakingSignal&) = delete;

 private:
  static void handle(int signal) {
    python_action.sa_handler(signal);
    if (machine::Machine* machine = to_wake.load()) machine->wake();
  }

  // A signal handler has no other way to its data.
  static inline std::atomic<machine::Machine*> to_wake{nullptr};
  static inline struct sigaction python_action{};
  bool installed_ = false;
};

// While it lives, SIGUSR1 writes the Python stacks of this PE to stderr, also inside a call of C, before the job reports what its PEs
// wait for.
class StacksOnSignal {
 public:
  explicit StacksOnSignal(const job::Job& job) {
    if (!job.has_report_signal()) return;
    const Ref show = import_from("weft._job.signals", "show_stacks_on_request");
    const Ref file = checked(PyLong_FromLong(job.expect_own_stacks()));
    is_set_ = PyObject_IsTrue(checked(PyObject_CallOneArg(show.get(), file.get())).get()) == 1;
  }
  ~StacksOnSignal() {
    if (!is_set_) return;
    try {
      const Ref hide = import_from("weft._job.signals", "hide_stacks");
      checked(PyObject_CallNoArgs(hide.get()));
    } catch (const PythonError&) {
      PyErr_Clear();
    }
  }
  StacksOnSignal(const StacksOnSignal&) = delete;
  StacksOnSignal& operator=(const StacksOnSignal&) = delete;

 private:
  bool is_set_ = false;
};

}  // namespace weft::python
