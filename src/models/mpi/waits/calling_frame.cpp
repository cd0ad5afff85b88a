#include "models/mpi/waits/calling_frame.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/format.h"

namespace weft::mpi {

namespace {

constexpr std::size_t kMostFrames = 64;

std::string_view file_name(const char* path) {
  const std::string_view whole = path == nullptr ? "?" : path;
  return whole.substr(whole.rfind('/') + 1);
}

// "MPI_Recv" if that is the function of the library; else empty. MPI_Recv and PMPI_Recv are one function.
std::string_view call_of(const Dl_info& info) {
  std::string_view name = info.dli_sname == nullptr ? "" : info.dli_sname;
  if (name.starts_with("PMPI_")) name.remove_prefix(1);
  return name.starts_with("MPI_") || name.starts_with("MPIX_") ? name : std::string_view();
}

std::string place_of(const Dl_info& info, const void* address) {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  if (info.dli_sname != nullptr)
    return base::format("{}, {}+{:#x}", info.dli_sname, file_name(info.dli_fname), offset);
  return base::format("{}+{:#x}", file_name(info.dli_fname), offset);
}

}  // namespace

std::string calling_frame() {
  std::array<void*, kMostFrames> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  std::string text;
  // From the outermost frame: functions of MPI may call others.
  for (int i = count - 1; i >= 0; --i) {
    Dl_info info{};
    if (dladdr(frames[static_cast<std::size_t>(i)], &info) == 0) continue;
    const std::string_view call = call_of(info);
    if (call.empty()) continue;
    text = call;
    Dl_info caller{};
    if (i + 1 < count && dladdr(frames[static_cast<std::size_t>(i) + 1], &caller) != 0)
      text += base::format(" ({})", place_of(caller, frames[static_cast<std::size_t>(i) + 1]));
    break;
  }
  return text;
}

}  // namespace weft::mpi
