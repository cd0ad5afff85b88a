#include "weft/base/error.h"

#include <utility>

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::base {

RemoteError::RemoteError(const std::string& type, const std::string& message, const std::string& traceback,
                         std::string original)
    : Error(StatusCode::kInternal, type + ": " + message + "\n" + traceback),
      type_(type),
      message_(message),
      traceback_(traceback),
      original_(std::move(original)) {}

void throw_status(const Status& status) { throw Error(status.code(), std::string(status.message())); }

void refuse_claim(std::string_view claim, std::string_view question) {
  throw Error(StatusCode::kCorrupt, format("{}; {}", claim, question));
}

}  // namespace weft::base
