#include "job/trace/job_trace.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "weft/base/error.h"

#include "base/format.h"
#include "job/trace/perfetto_trace.h"

namespace weft::job {

namespace {

constexpr std::size_t kDefaultMib = 256;
constexpr std::size_t kMostMib = 1 << 20;

std::size_t memory_bytes() {
  const char* const variable = std::getenv("WEFT_TRACE_MIB");
  std::size_t mib = kDefaultMib;
  if (variable != nullptr) {
    const char* const end = variable + std::strlen(variable);
    const auto [rest, error] = std::from_chars(variable, end, mib);
    if (error != std::errc() || rest != end || mib < 1 || mib > kMostMib) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("WEFT_TRACE_MIB is '{}': give a number of MiB from 1 to {}", variable, kMostMib));
    }
  }
  return mib << 20;
}

std::string host_name() {
  std::array<char, 256> name = {};
  static_cast<void>(gethostname(name.data(), name.size() - 1));
  return name.data();
}

// From the steady clock to the time of day.
std::int64_t offset_to_time_of_day_ns() {
  using std::chrono::duration_cast;
  using std::chrono::nanoseconds;
  return duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count() -
         duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::unique_ptr<JobTrace> JobTrace::from_environment(runtime::Runtime& runtime, bool has_other_hosts) {
  const char* const file = std::getenv("WEFT_TRACE");
  if (file == nullptr || *file == '\0') return nullptr;
  // The program may change its folder before the end.
  return std::unique_ptr<JobTrace>(
      new JobTrace(runtime, std::filesystem::absolute(file), memory_bytes(), has_other_hosts));
}

JobTrace::JobTrace(runtime::Runtime& runtime, std::filesystem::path file, std::size_t memory_bytes,
                   bool has_other_hosts)
    : runtime_(runtime),
      file_(std::move(file)),
      has_other_hosts_(has_other_hosts),
      recorder_(runtime, memory_bytes) {}

void JobTrace::write() {
  const int pe = runtime_.pe();
  const auto tell = [pe](std::string_view what) {
    std::fputs(base::format("weft: PE {}: {}\n", pe, what).c_str(), stderr);
  };
  if (!recorder_.has_recorded()) return tell("no trace was recorded: the program has an observer of its own");
  recorder_.stop();
  const TracedPe traced = {
      .pe = pe,
      .process = base::format("PE {}, process {} of {}", pe, getpid(), host_name()),
      .clock_offset_ns = has_other_hosts_ ? offset_to_time_of_day_ns() : 0,
  };
  const std::string path =
      runtime_.num_pes() == 1 ? file_.native() : base::format("{}.pe-{}", file_.native(), pe);
  const base::Status status = write_trace(path, recorder_, traced);
  if (status.failed()) tell(status.message());
  if (recorder_.num_lost() > 0) {
    tell(base::format("the trace lacks the first {} events; WEFT_TRACE_MIB gives it more memory",
                      recorder_.num_lost()));
  }
}

}  // namespace weft::job
