#include "weft/runtime/remote_error.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>
#include <utility>

#include "weft/base/error.h"

namespace weft::runtime {

namespace {

std::string readable_type(const std::type_info& type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                              std::free);
  return status == 0 ? name.get() : type.name();
}

constexpr const char* kLostPe = "weft.LostPE";

}  // namespace

std::exception_ptr as_remote_error(const std::exception_ptr& error, const std::string& where) {
  std::string frame = where.empty() ? "" : "  " + where + "\n";
  try {
    std::rethrow_exception(error);
  } catch (const base::RemoteError& remote) {
    return std::make_exception_ptr(base::RemoteError(remote.type(), remote.remote_message(),
                                                     remote.traceback() + frame, remote.original()));
  } catch (const std::exception& exception) {
    // Weft's own error has one name in both languages.
    const std::type_info& type = typeid(exception);
    return std::make_exception_ptr(base::RemoteError(type == typeid(base::Error)    ? "weft.Error"
                                                     : type == typeid(base::LostPe) ? kLostPe
                                                                                    : readable_type(type),
                                                     exception.what(), frame));
  } catch (...) {
    return std::make_exception_ptr(
        base::RemoteError("unknown exception", "not derived from std::exception", frame));
  }
}

void pack_error(Pup& p, const std::exception_ptr& error) {
  std::string type;
  std::string message;
  std::string traceback;
  std::string original;
  try {
    std::rethrow_exception(as_remote_error(error, ""));
  } catch (const base::RemoteError& remote) {
    type = remote.type();
    message = remote.remote_message();
    traceback = remote.traceback();
    original = remote.original();
  }
  p | type | message | traceback | original;
}

std::exception_ptr unpack_error(Pup& p) {
  std::string type;
  std::string message;
  std::string traceback;
  std::string original;
  p | type | message | traceback | original;
  const int lost = type == kLostPe && original.empty() ? base::lost_pe_in(message) : -1;
  if (lost >= 0) return std::make_exception_ptr(base::LostPe(lost, message));
  return std::make_exception_ptr(base::RemoteError(type, message, traceback, std::move(original)));
}

}  // namespace weft::runtime
