#include "machine/ucx/setup/transport_list.h"

#include <algorithm>
#include <vector>

namespace weft::machine::ucx {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// UCX skips what is empty between two commas.
std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    std::string_view name = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), name.size() + 1));
    name.remove_prefix(std::min(name.size(), name.find_first_not_of(kSpace)));
    name = name.substr(0, name.find_last_not_of(kSpace) + 1);
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

// UCX takes "\name" for a transport that is not the name of several, and "name:aux" for one that only connects.
std::string_view transport_of(std::string_view name) {
  if (name.starts_with('\\')) name.remove_prefix(1);
  return name.substr(0, name.find(':'));
}

}  // namespace

std::string without_sysv(std::string_view list, bool has_xpmem, bool has_knem) {
  const bool excludes = list.starts_with('^');
  const std::vector<std::string_view> names = names_in(list.substr(excludes ? 1 : 0));
  // UCX takes "^all" for all, and refuses other names behind it, as it refuses an empty list.
  if (names.empty() || (names.front() == "all" && names.size() > 1)) return std::string(list);
  if (names.front() == "all") return "^sysv";
  std::vector<std::string_view> kept;
  const auto keep = [&](std::string_view name) {
    if (std::ranges::find(kept, name) == kept.end()) kept.push_back(name);
  };
  for (const std::string_view name : names) {
    const bool is_all_shared_memory = name == "sm" || name == "shm";
    if (excludes) {
      keep(name);
    } else if (is_all_shared_memory || name == "mm") {
      keep("posix");
      if (has_xpmem) keep("xpmem");
      if (is_all_shared_memory && has_knem) keep("knem");
      if (is_all_shared_memory) keep("cma");
    } else {
      keep(transport_of(name) == "sysv" ? "posix" : name);
    }
  }
  if (excludes) keep("sysv");
  std::string result = excludes ? "^" : "";
  for (const std::string_view name : kept) {
    if (name != kept.front()) result += ',';
    result += name;
  }
  return result;
}

}  // namespace weft::machine::ucx
