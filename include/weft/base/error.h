// The exceptions of the C++ API, one family: catch weft::Error for all of them.
#pragma once

#include <stdexcept>
#include <string>

#include "weft/base/status.h"

namespace weft::base {

// What went wrong, where and what to do about it; code() for programs that react to a kind of failure.
class Error : public std::runtime_error {
 public:
  Error(StatusCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  StatusCode code() const noexcept { return code_; }

 private:
  StatusCode code_;
};

// An exception that left an entry method on some PE and travelled to whoever awaited the call.
class RemoteError : public Error {
 public:
  // `type` is the exception's type as its language names it; `traceback` says PE, chare, entry method
  // and, from Python, the remote traceback.
  RemoteError(const std::string& type, const std::string& message, const std::string& traceback);

  const std::string& type() const noexcept { return type_; }
  const std::string& remote_message() const noexcept { return message_; }
  const std::string& traceback() const noexcept { return traceback_; }

 private:
  std::string type_;
  std::string message_;
  std::string traceback_;
};

// Throws the Error that says what `status` says. REQUIRES: status.failed().
[[noreturn]] void throw_status(const Status& status);

// For a place that has nobody to report to: throws unless the operation succeeded or is under way.
inline void check(const Status& status) {
  if (status.failed()) throw_status(status);
}

}  // namespace weft::base
