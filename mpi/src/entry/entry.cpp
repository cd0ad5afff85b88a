#include "entry/entry.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>

#include "weft/mpi/mpi-ext.h"

#include "base/format.h"
#include "entry/handles.h"
#include "entry/objects.h"
#include "models/mpi/communicators/collective_context.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/process.h"
#include "models/mpi/rank.h"

namespace weft::mpi {

namespace {

std::string_view action_name(ErrorHandler::Action action) {
  return action == ErrorHandler::Action::kAbort ? "MPI_ERRORS_ABORT" : "MPI_ERRORS_ARE_FATAL";
}

std::string sentence_of(const char* function, const ErrorScope* scope, const Error& error,
                        ErrorHandler::Action action) {
  Rank& rank = this_rank();
  std::string text = error.text;
  if (text.empty() && !rank.error_codes.string_of(error.error_class, &text).ok()) text = "unknown error";
  const std::string where = rank.number < 0 ? std::string() : base::format(" rank {}:", rank.number);
  const std::string on = scope == nullptr || scope->name().empty() ? std::string() : " on " + scope->name();
  const std::string_view name = error_class_name(error.error_class);
  // The program may have called the small form, so both have its name.
  std::string_view caller = function;
  if (caller.ends_with("_c")) caller.remove_suffix(2);
  const std::string code =
      name.empty() ? base::format("error code {}", error.error_class) : std::string(name);
  // Few programs can set a handler before MPI has started.
  const std::string_view remedy =
      scope == nullptr && rank.number < 0 ? "" : "; set MPI_ERRORS_RETURN to get the error code instead";
  return base::format("weft:{} {}{}: {} ({}). The error handler {} ends the job{}.", where, caller, on, text,
                      code, action_name(action), remedy);
}

template <class Handle>
int hand_to(const ErrorHandler& handler, const char* function, const ErrorScope* scope, Handle handle,
            const Error& error) {
  switch (handler.action()) {
    case ErrorHandler::Action::kReturn:
      break;
    case ErrorHandler::Action::kCall:
      handler.call(handle, error.error_class);
      break;
    case ErrorHandler::Action::kEndJob:
    case ErrorHandler::Action::kAbort:
      this_rank().end_job(sentence_of(function, scope, error, handler.action()), 1);
      break;
  }
  return error.error_class;
}

template <class Handle>
int raise_on(const char* function, const ErrorScope* scope, Handle handle, const Error& error) {
  const LibraryRuns library;
  // A reference of its own: the function of a handler may replace the handler.
  const Ref<ErrorHandler> handler = scope == nullptr ? this_rank().errors_are_fatal : scope->error_handler();
  return hand_to(*handler, function, scope, handle, error);
}

// Goes to MPI_COMM_SELF if the call was not given a handler for what it makes.
template <class Handle>
int raise_given(const char* function, const GivenHandler<Handle>& given, ObjectKind made,
                const Error& error) {
  const LibraryRuns library;
  ErrorHandler* handler = nullptr;
  if (!find_object(given.handler, &handler).ok() || !handler->serves(made))
    return raise(function, kNoObject, error);
  const Ref<ErrorHandler> kept(*handler);
  return hand_to(*kept, function, nullptr, given.none, error);
}

// Programs repeat calls that fail at once, until they hear of a revocation.
void make_progress_after_loss(const Error& error) {
  if (error.error_class == MPIX_ERR_PROC_FAILED && this_rank().process != nullptr) this_process().progress();
}

// The handle of the object itself, or MPI_COMM_SELF if the error has moved there.
template <class Handle>
int raise_or_move(const char* function, Handle handle, const Error& error) {
  const LibraryRuns library;
  make_progress_after_loss(error);
  if (ErrorScope* const scope = error_scope(handle); scope != nullptr) {
    return raise_on(function, scope, handle, error);
  }
  return raise_on(function, this_rank().self, MPI_COMM_SELF, error);
}

}  // namespace

ErrorScope* error_scope(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD) return this_rank().world;
  if (comm == MPI_COMM_SELF) return this_rank().self;
  return object_of<ErrorScope>(comm, ObjectKind::kCommunicator);
}

ErrorScope* error_scope(MPI_Win win) { return object_of<ErrorScope>(win, ObjectKind::kWindow); }

ErrorScope* error_scope(MPI_File file) {
  if (file == MPI_FILE_NULL) return this_rank().no_file.get();
  return object_of<ErrorScope>(file, ObjectKind::kFile);
}

ErrorScope* error_scope(MPI_Session session) { return object_of<ErrorScope>(session, ObjectKind::kSession); }

int raise(const char* function, MPI_Comm comm, const Error& error) {
  return raise_or_move(function, comm, error);
}
int raise(const char* function, MPI_Win win, const Error& error) {
  return raise_or_move(function, win, error);
}
int raise(const char* function, MPI_File file, const Error& error) {
  return raise_or_move(function, file, error);
}
int raise(const char* function, MPI_Session session, const Error& error) {
  return raise_or_move(function, session, error);
}
int raise(const char* function, NoObject /*none*/, const Error& error) {
  return raise_on(function, this_rank().self, MPI_COMM_SELF, error);
}
int raise(const char* function, GivenHandler<MPI_Comm> given, const Error& error) {
  return raise_given(function, given, ObjectKind::kCommunicator, error);
}
int raise(const char* function, GivenHandler<MPI_Session> given, const Error& error) {
  return raise_given(function, given, ObjectKind::kSession, error);
}

Error current_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {MPI_ERR_NO_MEM, "the memory of this process is exhausted"};
  } catch (const TransferFailed& failure) {
    return {failure.error_class(), failure.what()};
  } catch (const std::exception& exception) {
    return {MPI_ERR_INTERN, exception.what()};
  } catch (...) {
    return {MPI_ERR_INTERN, "an exception of an unknown type"};
  }
}

Error require(std::initializer_list<PointerArgument> arguments) {
  for (const auto& [pointer, name] : arguments) {
    if (!is_address(pointer))
      return {MPI_ERR_ARG, base::format("the argument {} is {}", name, describe_sentinel(pointer))};
  }
  return {};
}

void copy_string(std::string_view text, std::size_t size, char* result) {
  if (size == 0) return;
  const std::size_t length = std::min(text.size(), size - 1);
  text.copy(result, length);
  result[length] = '\0';
}

void report_missing(const char* function) {
  Rank& rank = this_rank();
  if (rank.is_first_report(function)) std::fprintf(stderr, "weft: %s is not implemented\n", function);
}

}  // namespace weft::mpi
