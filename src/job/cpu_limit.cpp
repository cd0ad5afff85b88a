#include "job/cpu_limit.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>

namespace weft::job {

namespace {

// Empty if there is no such file.
std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string_view take_word(std::string_view& text, char separator) {
  const std::string_view word = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

// 0 if the text does not begin with a number, as for "max" and "-1".
std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : 0;
}

// The limit of one group, whose folder that is. 0: none.
int limit_of(const std::string& folder, bool is_unified) {
  std::string quota_us;
  std::string period_us;
  if (is_unified) {
    const std::string both = read(folder + "/cpu.max");
    std::string_view rest = both;
    quota_us = take_word(rest, ' ');
    period_us = rest;
  } else {
    quota_us = read(folder + "/cpu.cfs_quota_us");
    period_us = read(folder + "/cpu.cfs_period_us");
  }
  const std::uint64_t quota = number_in(quota_us);
  const std::uint64_t period = number_in(period_us);
  if (quota == 0 || period == 0) return 0;
  const std::uint64_t most = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp<std::uint64_t>(quota / period, 1, most));
}

bool names_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    if (take_word(controllers, ',') == "cpu") return true;
  }
  return false;
}

}  // namespace

std::optional<CpuLimit> find_cpu_limit(std::string_view groups, const std::string& root) {
  std::optional<CpuLimit> tightest;
  while (!groups.empty()) {
    // Number, controllers, path. The line of the unified hierarchy names no controllers.
    std::string_view line = take_word(groups, '\n');
    take_word(line, ':');
    const std::string_view controllers = take_word(line, ':');
    const bool is_unified = controllers.empty();
    if (!is_unified && !names_cpu(controllers)) continue;
    const std::string mount = is_unified ? root : root + "/cpu";
    // Inside a container the path may be that outside, where only the root of it can be seen.
    // Of equal limits the outer one counts, which more processes may share.
    for (std::string path(line);;) {
      const std::string folder = mount + path;
      const int limit = limit_of(folder, is_unified);
      struct stat status = {};
      if (limit > 0 && (!tightest || limit <= tightest->num_processors) && stat(folder.c_str(), &status) == 0)
        tightest = {limit, status.st_ino};
      if (path.empty()) break;
      const std::size_t end = path.rfind('/');
      path.resize(end == std::string::npos ? 0 : end);
    }
  }
  return tightest;
}

std::optional<CpuLimit> own_cpu_limit() {
  return find_cpu_limit(read("/proc/self/cgroup"), "/sys/fs/cgroup");
}

}  // namespace weft::job
