#include "memory/kinds/emulated/emulated_options.h"

#include <charconv>

#include "base/format.h"

namespace weft::memory {

using base::Status;
using base::StatusCode;

namespace {

Status bad_fault(std::string_view part) {
  return Status(StatusCode::kInvalidArgument,
                base::format("'{}' is no fault of the emulated kind: expected polls=N (N >= 1), fail_copy=N, "
                             "fail_allocation=N, device_bytes=N or refuse_exports=0|1, separated by commas",
                             part));
}

Status set_fault(EmulatedFaults& faults, std::string_view part) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) return bad_fault(part);
  const std::string_view name = part.substr(0, equals);
  const std::string_view digits = part.substr(equals + 1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return bad_fault(part);

  if (name == "polls" && value >= 1 && value <= std::numeric_limits<int>::max()) {
    faults.polls_per_copy = static_cast<int>(value);
  } else if (name == "fail_copy") {
    faults.fail_copy = value;
  } else if (name == "fail_allocation") {
    faults.fail_allocation = value;
  } else if (name == "device_bytes") {
    faults.device_bytes = value;
  } else if (name == "refuse_exports" && value <= 1) {
    faults.refuse_exports = value == 1;
  } else {
    return bad_fault(part);
  }
  return {};
}

}  // namespace

base::Result<EmulatedFaults> parse_emulated_faults(std::string_view text) {
  EmulatedFaults faults;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    Status status = set_fault(faults, text.substr(0, comma));
    if (status.failed()) return status;
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return faults;
}

}  // namespace weft::memory
