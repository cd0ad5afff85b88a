#include "weft/base/error.h"

#include <charconv>
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

int lost_pe_in(std::string_view text) {
  constexpr std::string_view kPe = "PE ";
  constexpr std::string_view kIsLost = " is lost";
  for (std::size_t at = text.find(kIsLost); at != std::string_view::npos; at = text.find(kIsLost, at + 1)) {
    const std::size_t begin = text.rfind(kPe, at);
    if (begin == std::string_view::npos) return -1;
    const char* const first = text.data() + begin + kPe.size();
    int pe = -1;
    const auto [stopped, error] = std::from_chars(first, text.data() + at, pe);
    if (error == std::errc() && stopped == text.data() + at) return pe;
  }
  return -1;
}

std::exception_ptr error_of(const Status& status) {
  const std::string text(status.message());
  const int lost = status.code() == StatusCode::kPeerFailed ? lost_pe_in(text) : -1;
  return lost >= 0 ? std::make_exception_ptr(LostPe(lost, text))
                   : std::make_exception_ptr(Error(status.code(), text));
}

void throw_status(const Status& status) { std::rethrow_exception(error_of(status)); }

void refuse_claim(std::string_view claim, std::string_view question) {
  throw Error(StatusCode::kCorrupt, format("{}; {}", claim, question));
}

}  // namespace weft::base
