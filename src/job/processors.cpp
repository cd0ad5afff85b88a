#include "job/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/format.h"

namespace weft::job {

namespace {

// Numbers of processors are below this. A list of a peer that names a higher one is not read. The kernel's own limit is 8192.
constexpr std::uint32_t kMaxProcessors = 1 << 16;

// By number.
using Set = std::vector<bool>;

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number >= kMaxProcessors) return {};
  return number;
}

// Empty if the text is no list.
Set parse(std::string_view list) {
  Set set;
  while (!list.empty()) {
    const std::string_view range = list.substr(0, list.find(','));
    list.remove_prefix(std::min(range.size() + 1, list.size()));
    const std::size_t dash = range.find('-');
    const auto first = number_of(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_of(range.substr(dash + 1));
    if (!first || !last || *first > *last) return {};
    if (set.size() <= *last) set.resize(*last + 1);
    std::fill(set.begin() + *first, set.begin() + *last + 1, true);
  }
  return set;
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
  return list;
}

runtime::ProcessorShare share_of(std::size_t own, std::span<const std::string_view> lists) {
  const Set mine = parse(lists[own]);
  // Nothing is known of this PE, so it may share with all.
  if (mine.empty()) return {.num_pes = static_cast<int>(lists.size()), .num_processors = 1};
  Set all = mine;
  int num_pes = 0;
  int num_inside = 0;  // PEs that run nowhere else than this one may
  for (const std::string_view list : lists) {
    const Set theirs = parse(list);
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
  if (num_inside > own_count) return {.num_pes = num_inside, .num_processors = own_count};
  return {.num_pes = num_pes, .num_processors = static_cast<int>(std::ranges::count(all, true))};
}

}  // namespace weft::job
