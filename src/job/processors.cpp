#include "job/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/format.h"
#include "job/cpu_limit.h"

namespace weft::job {

namespace {

// Numbers of processors are below this. A list of a peer that names a higher one is not read. The kernel's own limit is 8192.
constexpr std::uint32_t kMaxProcessors = 1 << 16;

// By number.
using Set = std::vector<bool>;

template <class Number>
std::optional<Number> number_of(std::string_view text, Number most) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > most) return {};
  return number;
}

// Empty if the text is no list.
Set parse_set(std::string_view list) {
  Set set;
  while (!list.empty()) {
    const std::string_view range = list.substr(0, list.find(','));
    list.remove_prefix(std::min(range.size() + 1, list.size()));
    const std::size_t dash = range.find('-');
    const auto first = number_of(range.substr(0, dash), kMaxProcessors - 1);
    const auto last =
        dash == std::string_view::npos ? first : number_of(range.substr(dash + 1), kMaxProcessors - 1);
    if (!first || !last || *first > *last) return {};
    if (set.size() <= *last) set.resize(*last + 1);
    std::fill(set.begin() + *first, set.begin() + *last + 1, true);
  }
  return set;
}

// What a PE has sent: its processors and, if there is one, its limit.
struct Claim {
  Set set;
  std::optional<CpuLimit> limit;
};

// Without processors if the text is none.
Claim parse(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return {parse_set(text), {}};
  const std::string_view limit = text.substr(at + 1);
  const std::size_t slash = limit.find('/');
  if (slash == std::string_view::npos) return {};
  const auto num_processors = number_of(limit.substr(0, slash), std::numeric_limits<int>::max());
  const auto group = number_of(limit.substr(slash + 1), std::numeric_limits<std::uint64_t>::max());
  if (!num_processors || *num_processors < 1 || !group) return {};
  return {parse_set(text.substr(0, at)), CpuLimit{*num_processors, *group}};
}

bool intersect(const Set& one, const Set& other) {
  const std::size_t size = std::min(one.size(), other.size());
  for (std::size_t i = 0; i < size; ++i) {
    if (one[i] && other[i]) return true;
  }
  return false;
}

// An empty set counts as within.
bool is_within(const Set& inner, const Set& outer) {
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] && (i >= outer.size() || !outer[i])) return false;
  }
  return true;
}

// The processors on which this process may run. The kernel refuses a mask that is too small for the processors of the
// machine; then a larger one is tried.
Set own_set() {
  for (std::size_t num_processors = CPU_SETSIZE; num_processors <= kMaxProcessors; num_processors *= 2) {
    std::vector<cpu_set_t> mask(num_processors / CPU_SETSIZE);
    const std::size_t size_bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, size_bytes, mask.data()) != 0) continue;
    Set set(num_processors);
    for (std::size_t i = 0; i < num_processors; ++i) set[i] = CPU_ISSET_S(i, size_bytes, mask.data());
    return set;
  }
  return {};
}

}  // namespace

std::string own_processors() {
  const Set set = own_set();
  std::string list;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (!set[i]) continue;
    std::size_t last = i;
    while (last + 1 < set.size() && set[last + 1]) ++last;
    list += list.empty() ? "" : ",";
    list += last == i ? base::format("{}", i) : base::format("{}-{}", i, last);
    i = last;
  }
  const std::optional<CpuLimit> limit = own_cpu_limit();
  if (limit && !list.empty()) list += base::format("@{}/{}", limit->num_processors, limit->group);
  return list;
}

runtime::ProcessorShare share_of(std::size_t own, std::span<const std::string_view> claims) {
  const auto [mine, limit] = parse(claims[own]);
  // Nothing is known of this PE, so it may share with all.
  if (mine.empty()) return {.num_pes = static_cast<int>(claims.size()), .num_processors = 1};
  Set all = mine;
  int num_pes = 0;
  int num_inside = 0;   // PEs that run nowhere else than this one may
  int num_limited = 0;  // PEs with the same limit
  for (const std::string_view claim : claims) {
    const auto [theirs, their_limit] = parse(claim);
    if (limit && (theirs.empty() || (their_limit && their_limit->group == limit->group))) ++num_limited;
    if (!theirs.empty() && !intersect(mine, theirs)) continue;
    ++num_pes;
    if (is_within(theirs, mine)) ++num_inside;
    if (all.size() < theirs.size()) all.resize(theirs.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      if (theirs[i]) all[i] = true;
    }
  }
  // Others that may also run elsewhere do not make room for two that are bound to one processor.
  const auto own_count = static_cast<int>(std::ranges::count(mine, true));
  runtime::ProcessorShare share{.num_pes = num_pes,
                                .num_processors = static_cast<int>(std::ranges::count(all, true))};
  if (num_inside > own_count) share = {.num_pes = num_inside, .num_processors = own_count};
  // More PEs for each processor.
  if (limit && num_limited > limit->num_processors &&
      std::int64_t{num_limited} * share.num_processors > std::int64_t{share.num_pes} * limit->num_processors)
    share = {.num_pes = num_limited, .num_processors = limit->num_processors};
  return share;
}

}  // namespace weft::job
