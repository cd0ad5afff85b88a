// How much processor time the kernel gives to this process: the bandwidth limit of its control group. Containers are often limited so,
// while they see all cores of the machine. A group that has used its time is stopped for the rest of the period, 100 ms as a rule.
//
// Source: the Linux kernel's admin-guide/cgroup-v2 ("cpu.max") and scheduler/sched-bwc ("cpu.cfs_quota_us").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::job {

struct CpuLimit {
  int num_processors = 0;  // that the group may keep busy, rounded down, at least 1
  std::uint64_t group =
      0;  // the same for all processes of the group, another one for those of another group of this host
};

// The tightest limit of the groups that `groups` names, the text of /proc/self/cgroup, and of those around them. `root`: where the control groups
// are mounted. Nothing if there is no limit, or if the kernel does not say.
std::optional<CpuLimit> find_cpu_limit(std::string_view groups, const std::string& root);
// Of this process.
std::optional<CpuLimit> own_cpu_limit();

}  // namespace weft::job
