#include "machine/ucx/setup/introduction.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/format.h"

namespace weft::machine::ucx {
namespace {

// The private transports: the same user alone can open their shared-memory segments and files under /proc. Not so `sysv`.
constexpr std::array<std::string_view, 14> kPrivate = {
    "self",     "posix",     "xpmem",    "cma",      "knem",    "cuda_copy", "cuda_ipc",
    "gdr_copy", "rocm_copy", "rocm_ipc", "rocm_gdr", "ze_copy", "ze_ipc",    "ze_gdr"};

constexpr std::size_t kQueuesAt = 2 + JobSecret::kBytes;
constexpr std::size_t kFixedBytes = kQueuesAt + sizeof(HostQueuesName);

base::Result<Introduction> unpack(std::span<const std::byte> bytes, std::size_t pe) {
  const auto mode = bytes.empty() ? 0xff : std::to_integer<unsigned>(bytes[0]);
  const auto is_private = bytes.size() < 2 ? 0xff : std::to_integer<unsigned>(bytes[1]);
  if (bytes.size() <= kFixedBytes || mode > static_cast<unsigned>(StagingMode::kHost) || is_private > 1) {
    return base::Status(
        base::StatusCode::kCorrupt,
        base::format("PE {} introduced itself with {} bytes that mean nothing here; do all PEs "
                     "run the same version of Weft?",
                     pe, bytes.size()));
  }
  auto proposed = JobSecret::from_bytes(bytes.subspan(2, JobSecret::kBytes));
  if (!proposed.ok()) return proposed.status();
  HostQueuesName queues;
  std::memcpy(&queues, bytes.subspan(kQueuesAt).data(), sizeof queues);
  const auto address = bytes.subspan(kFixedBytes);
  return Introduction{.staging = static_cast<StagingMode>(mode),
                      .is_private = is_private == 1,
                      .proposed = *proposed,
                      .queues = queues,
                      .address = {address.begin(), address.end()}};
}

}  // namespace

bool are_private(const std::set<std::string>& transports) {
  return !transports.empty() && std::ranges::all_of(transports, [](std::string_view name) {
    return std::ranges::find(kPrivate, name.substr(0, name.find('/'))) != kPrivate.end();
  });
}

bool has_shared_memory(const std::set<std::string>& transports) {
  return std::ranges::any_of(transports, [](std::string_view name) {
    const std::string_view transport = name.substr(0, name.find('/'));
    return transport == "posix" || transport == "xpmem";
  });
}

std::vector<std::byte> Introduction::pack() const {
  std::vector<std::byte> bytes;
  bytes.reserve(kFixedBytes + address.size());
  bytes.push_back(static_cast<std::byte>(staging));
  bytes.push_back(static_cast<std::byte>(is_private));
  bytes.insert(bytes.end(), proposed.bytes().begin(), proposed.bytes().end());
  const auto queue_bytes = std::as_bytes(std::span(&queues, 1));
  bytes.insert(bytes.end(), queue_bytes.begin(), queue_bytes.end());
  bytes.insert(bytes.end(), address.begin(), address.end());
  return bytes;
}

base::Result<Agreement> agree(const std::vector<std::vector<std::byte>>& introductions, int pe) {
  std::vector<Introduction> all;
  for (const std::vector<std::byte>& bytes : introductions) {
    auto one = unpack(bytes, all.size());
    if (!one.ok()) return one.status();
    all.push_back(std::move(one).value());
  }
  Agreement agreement;
  const StagingMode mine = all.at(static_cast<std::size_t>(pe)).staging;
  for (std::size_t other = 0; other < all.size(); ++other) {
    if (all[other].staging != mine) {
      return base::Status(
          base::StatusCode::kInvalidArgument,
          base::format("PE {} and PE {} were started with different values of WEFT_STAGING; all "
                       "PEs of a job need the same",
                       pe, other));
    }
    if (!all[other].is_private) agreement.secret = all.front().proposed;
    agreement.queues.push_back(all[other].queues);
    agreement.addresses.push_back(std::move(all[other].address));
  }
  return agreement;
}

}  // namespace weft::machine::ucx
