#include "models/mpi/objects/info.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "base/format.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/objects/error.h"

namespace weft::mpi {

namespace {

Error check_info_value(const char* value) {
  if (!is_address(value))
    return {MPI_ERR_INFO_VALUE, base::format("the value is {}", describe_sentinel(value))};
  if (const std::size_t length = std::strlen(value); length >= MPI_MAX_INFO_VAL) {
    return {MPI_ERR_INFO_VALUE,
            base::format("a value of {} bytes is too long; {} is the most", length, MPI_MAX_INFO_VAL - 1)};
  }
  return {};
}

std::string joined(int num_arguments, const char* const* arguments) {
  std::string text;
  for (int at = 0; at < num_arguments && arguments[at] != nullptr; ++at) {
    if (at > 0) text += ' ';
    text += arguments[at];
  }
  return text;
}

}  // namespace

Error check_info_key(const char* key) {
  if (!is_address(key) || *key == '\0') return {MPI_ERR_INFO_KEY, "the key is empty"};
  if (const std::size_t length = std::strlen(key); length >= MPI_MAX_INFO_KEY) {
    return {MPI_ERR_INFO_KEY,
            base::format("a key of {} bytes is too long; {} is the most", length, MPI_MAX_INFO_KEY - 1)};
  }
  return {};
}

Info::Pairs::iterator Info::position_of(std::string_view key) {
  return std::find_if(pairs_.begin(), pairs_.end(), [&](const auto& pair) { return pair.first == key; });
}

const std::string* Info::find(std::string_view key) const {
  const auto found =
      std::find_if(pairs_.begin(), pairs_.end(), [&](const auto& pair) { return pair.first == key; });
  return found == pairs_.end() ? nullptr : &found->second;
}

Error Info::set(const char* key, const char* value) {
  if (Error error = check_info_key(key); !error.ok()) return error;
  if (Error error = check_info_value(value); !error.ok()) return error;
  if (const auto found = position_of(key); found != pairs_.end()) {
    found->second = value;
  } else {
    pairs_.emplace_back(key, value);
  }
  return {};
}

Error Info::remove(const char* key) {
  if (Error error = check_info_key(key); !error.ok()) return error;
  const auto found = position_of(key);
  if (found == pairs_.end())
    return {MPI_ERR_INFO_NOKEY, base::format("the info object has no key '{}'", key)};
  pairs_.erase(found);
  return {};
}

Info::Pairs environment_pairs(int num_arguments, const char* const* arguments) {
  Info::Pairs pairs;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty() && value.size() < MPI_MAX_INFO_VAL) pairs.emplace_back(key, value);
  };
  if (is_address(static_cast<const void*>(arguments)) && num_arguments > 0 && arguments[0] != nullptr) {
    add("command", arguments[0]);
    add("argv", joined(num_arguments - 1, arguments + 1));
  }
  char folder[PATH_MAX] = {};
  if (getcwd(folder, sizeof(folder)) != nullptr) add("wdir", folder);
  utsname system = {};
  if (uname(&system) == 0) {
    add("arch", system.machine);
    add("host", system.nodename);
  }
  return pairs;
}

}  // namespace weft::mpi
