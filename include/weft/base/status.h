// The outcome of an operation inside Weft.
//
// Functions of the lower layers return a Status (or a Result<T>) and never throw. The API's edge turns a
// failed Status into an exception of error.h. A message says what happened, where (PE, peer, sizes) and what
// to do.
//
// `pending` is not a failure. A function that takes a Completion returns `pending` when the operation is in
// flight; completion.h states the contract.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weft::base {

enum class StatusCode : std::uint8_t {
  kOk,
  kPending,
  kCancelled,
  kTruncated,
  kInvalidArgument,
  kOutOfRange,
  kNotFound,
  kUnreachable,
  kPeerFailed,
  kOutOfMemory,
  kUnsupported,
  kClosed,
  kTimedOut,
  kCorrupt,
  kInternal,
};

std::string_view status_code_name(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(StatusCode code, std::string message);
  Status(const Status& other) : detail_(other.is_static() ? other.detail_ : clone(other.detail_)) {}
  Status(Status&& other) noexcept : detail_(std::exchange(other.detail_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(detail_, other.detail_);
    return *this;
  }
  ~Status() {
    if (!is_static()) destroy(detail_);
  }

  static Status pending() noexcept {
    Status status;
    status.detail_ = &kPendingDetail;
    return status;
  }

  // kCancelled. Allocates nothing: operations that may end in two ways cancel one of them each time.
  static Status cancelled() noexcept {
    Status status;
    status.detail_ = &kCancelledDetail;
    return status;
  }

  bool ok() const noexcept { return detail_ == nullptr; }
  bool is_pending() const noexcept { return detail_ == &kPendingDetail; }
  // The operation is over and did not succeed.
  bool failed() const noexcept { return !is_static(); }

  StatusCode code() const noexcept { return detail_ == nullptr ? StatusCode::kOk : detail_->code; }
  std::string_view message() const noexcept {
    return detail_ == nullptr ? std::string_view() : std::string_view(detail_->message);
  }
  // "truncated: ..."; "ok" for success.
  std::string to_string() const;

 private:
  struct Detail {
    StatusCode code;
    std::string message;
  };
  static const Detail kPendingDetail;
  static const Detail kCancelledDetail;
  static const Detail* clone(const Detail* detail);
  static void destroy(const Detail* detail);
  bool is_static() const noexcept { return detail_ == nullptr || detail_ == &kPendingDetail; }

  const Detail* detail_ = nullptr;
};

// A value, or the Status that says why there is none. REQUIRES: a Result made from a Status gets a failed
// one.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const noexcept { return value_.has_value(); }
  const Status& status() const noexcept { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  T& operator*() & { return *value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace weft::base
