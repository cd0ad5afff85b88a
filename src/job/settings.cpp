#include "job/settings.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::job {

void set_options(const runtime::Runtime& runtime) {
  for (const auto& installed : runtime.models()) {
    for (const runtime::ModelOption& option : installed.model->options()) {
      const std::string variable(option.variable);
      const char* const value = std::getenv(variable.c_str());
      if (value == nullptr || option.set(value)) continue;
      throw base::Error(base::StatusCode::kInvalidArgument,
                        base::format("{} is '{}': give {}", variable, value, option.values));
    }
  }
}

runtime::MessagingPath messaging_path() {
  const char* value = std::getenv("WEFT_MESSAGING_PATH");
  const std::string_view name = value == nullptr ? "auto" : value;
  if (name == "auto") return runtime::MessagingPath::kAuto;
  if (name == "tagged") return runtime::MessagingPath::kTagged;
  if (name == "active") return runtime::MessagingPath::kActive;
  throw base::Error(base::StatusCode::kInvalidArgument,
                    base::format("WEFT_MESSAGING_PATH is '{}': give auto, tagged or active", name));
}

runtime::Watermarks read_watermarks(const machine::Bootstrap& bootstrap) {
  auto watermarks = runtime::Watermarks::for_job(bootstrap.num_pes(), bootstrap.local_size());
  const char* const text = std::getenv("WEFT_CALL_LIMIT");
  if (text == nullptr || *text == '\0') return watermarks;
  constexpr long kMostMiB = 1 << 30;
  char* end = nullptr;
  const long limit_mib = std::strtol(text, &end, 10);
  if (end == text || *end != 0 || limit_mib < 1 || limit_mib > kMostMiB) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("WEFT_CALL_LIMIT is '{}': give a number of MiB, 1 or more", text));
  }
  watermarks.third_bytes = std::int64_t{limit_mib} << 20;
  watermarks.second_bytes = std::min(watermarks.second_bytes, watermarks.third_bytes / 2);
  watermarks.first_bytes = std::min(watermarks.first_bytes, watermarks.second_bytes / 2);
  return watermarks;
}

std::optional<runtime::HangSettings> hang_settings() {
  const char* const text = std::getenv("WEFT_HANG_REPORT");
  const std::string_view value = text == nullptr ? "off" : text;
  if (value.empty() || value == "off") return std::nullopt;
  constexpr double kMostSeconds = 1e6;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  const std::string_view rest = value.substr(static_cast<std::size_t>(end - text));
  if (end == text || !(seconds > 0 && seconds <= kMostSeconds) || (!rest.empty() && rest != ",end")) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("WEFT_HANG_REPORT is '{}': give seconds such as 10, or 10,end if the job is to "
                     "end then, or off",
                     value));
  }
  using Duration = std::chrono::steady_clock::duration;
  return runtime::HangSettings{std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)),
                               !rest.empty()};
}

bool statistics_wanted() {
  const char* value = std::getenv("WEFT_STATS");
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

bool checks_wanted() {
  const char* const value = std::getenv("WEFT_CHECK");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

}  // namespace weft::job
