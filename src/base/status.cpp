#include "weft/base/status.h"

namespace weft::base {

const Status::Detail Status::kPendingDetail{StatusCode::kPending, "the operation has not completed yet"};
const Status::Detail Status::kCancelledDetail{StatusCode::kCancelled, "the operation was cancelled"};

Status::Status(StatusCode code, std::string message) {
  if (code == StatusCode::kOk) return;
  detail_ = code == StatusCode::kPending ? &kPendingDetail : new Detail{code, std::move(message)};
}

const Status::Detail* Status::clone(const Detail* detail) {
  return detail == &kCancelledDetail ? detail : new Detail(*detail);
}

void Status::destroy(const Detail* detail) {
  if (detail != &kCancelledDetail) delete detail;
}

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kPending:
      return "pending";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kTruncated:
      return "truncated";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kOutOfRange:
      return "out of range";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kUnreachable:
      return "unreachable";
    case StatusCode::kPeerFailed:
      return "peer failed";
    case StatusCode::kOutOfMemory:
      return "out of memory";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kClosed:
      return "closed";
    case StatusCode::kTimedOut:
      return "timed out";
    case StatusCode::kCorrupt:
      return "corrupt data";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown status";
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  std::string text(status_code_name(code()));
  text += ": ";
  text += message();
  return text;
}

}  // namespace weft::base
