// The exceptions of the C++ API, one family: catch weft::Error for all of them.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weft/base/status.h"

namespace weft::base {

// what() says what happened, where, and what to do. code() is for programs that react to a kind of failure.
class Error : public std::runtime_error {
 public:
  Error(StatusCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  StatusCode code() const noexcept { return code_; }

 private:
  StatusCode code_;
};

// The operation needs a PE that the job has lost and outlives (`weft run --on-loss raise`).
class LostPe : public Error {
 public:
  LostPe(int pe, const std::string& message) : Error(StatusCode::kPeerFailed, message), pe_(pe) {}
  int pe() const noexcept { return pe_; }

 private:
  int pe_;
};

// An exception that left an entry method on some PE and was sent to the caller that awaits the call.
class RemoteError : public Error {
 public:
  // `type` is the exception's type as its language names it; `traceback` says PE, chare, entry method
  // and, from Python, the remote traceback. `original` are the bytes from which the exception's language can make the exception
  // again; empty for none.
  RemoteError(const std::string& type, const std::string& message, const std::string& traceback,
              std::string original = {});

  const std::string& type() const noexcept { return type_; }
  const std::string& remote_message() const noexcept { return message_; }
  const std::string& traceback() const noexcept { return traceback_; }
  const std::string& original() const noexcept { return original_; }

 private:
  std::string type_;
  std::string message_;
  std::string traceback_;
  std::string original_;
};

// The PE that a text of an error says to be lost, "PE 2 is lost"; -1 if it names none. Statuses name a lost PE by their text.
int lost_pe_in(std::string_view text);

// `status` as an Error, or as a LostPe if it is kPeerFailed and names a lost PE. REQUIRES: status.failed().
std::exception_ptr error_of(const Status& status);
// Throws error_of(status). REQUIRES: status.failed().
[[noreturn]] void throw_status(const Status& status);

// Throws if the operation failed; returns if it succeeded or is in flight.
inline void check(const Status& status) {
  if (status.failed()) throw_status(status);
}

}  // namespace weft::base
