// The name of a process that processes of other jobs on this host may know.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::machine {

// All processes of a job derive it from a text that no other job on the host has.
using JobNumber = std::array<std::uint64_t, 2>;

// FNV-1a from two starts. All zeros for an empty text.
inline JobNumber job_number(std::string_view text) {
  if (text.empty()) return {};
  JobNumber number = {0xcbf29ce484222325U, 0x9ae16a3b2f90404fU};
  for (const char c : text)
    for (std::uint64_t& part : number) part = (part ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return number;
}

// Travels as it lies in memory.
struct ProcessName {
  JobNumber job{};
  std::int32_t rank = 0;
  std::uint32_t unused = 0;

  auto operator<=>(const ProcessName&) const = default;
  // The name of the launcher, which has no links of its own.
  bool is_launcher() const { return job == JobNumber{}; }
};
static_assert(sizeof(ProcessName) == 24);

// The address of the socket at which a process gets messages, without the zero byte of abstract addresses.
std::string link_address(const ProcessName& name);

}  // namespace weft::machine
