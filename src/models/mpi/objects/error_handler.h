// ErrorHandler: the reaction to an operation of the program that fails. ErrorScope: an object that has one.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "weft/mpi/mpi.h"

#include "models/mpi/objects/counted.h"
#include "models/mpi/objects/object.h"
#include "models/mpi/virtual_ranks/running_code.h"

namespace weft::mpi {

// MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT, MPI_ERRORS_RETURN, or a function of the program.
class ErrorHandler final : public Object {
 public:
  enum class Action : std::uint8_t { kEndJob, kAbort, kReturn, kCall };
  using Function = void (*)();

  explicit ErrorHandler(Action action) : Object(ObjectKind::kErrorHandler), action_(action) {}
  // `function` takes a handle of a `caller`: a communicator, window, file or session.
  ErrorHandler(ObjectKind caller, Function function)
      : Object(ObjectKind::kErrorHandler), action_(Action::kCall), caller_(caller), function_(function) {}

  Action action() const { return action_; }
  // The kind of object whose handle function() takes, from the constructor with a function.
  ObjectKind caller() const { return caller_; }
  Function function() const { return function_; }
  // May an object of that kind have this handler?
  bool serves(ObjectKind kind) const { return action_ != Action::kCall || caller_ == kind; }

  // Calls the function of the program. REQUIRES: action() is kCall, and `Handle` is the handle of its caller.
  template <class Handle>
  void call(Handle handle, int code) const {
    const ProgramRuns program;
    reinterpret_cast<void (*)(Handle*, int*, ...)>(function_)(&handle, &code);
  }

 private:
  Action action_;
  ObjectKind caller_ = ObjectKind::kCommunicator;
  Function function_ = nullptr;
};

// An object to which errors belong: a communicator, window, file or session.
class ErrorScope : public Object {
 public:
  // Never null.
  const Ref<ErrorHandler>& error_handler() const { return error_handler_; }
  void set_error_handler(Ref<ErrorHandler> handler) { error_handler_ = std::move(handler); }

  // The name that the program, or the model, has given the object; error messages use it too.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

 protected:
  ErrorScope(ObjectKind kind, Ref<ErrorHandler> handler) : Object(kind), error_handler_(std::move(handler)) {}

 private:
  Ref<ErrorHandler> error_handler_;
  std::string name_;
};

}  // namespace weft::mpi
