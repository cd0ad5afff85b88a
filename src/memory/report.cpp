#include "memory/report.h"

#include <set>

#include "base/format.h"

namespace weft::memory {
namespace {

// "0 to 1, 1 to 0": the ordered pairs of which the first does not reach the second.
std::string unreachable_pairs(const KindBackend& backend, const std::set<int>& devices) {
  std::string text;
  for (const int device : devices) {
    for (const int peer : devices) {
      if (backend.can_access_peer(device, peer)) continue;
      text += base::format("{}{} to {}", text.empty() ? "" : ", ", device, peer);
    }
  }
  return text;
}

std::string describe(Memory& memory, Kind kind) {
  KindBackend* backend = memory.backend(kind);
  if (backend == nullptr) return base::format("not usable: {}", memory.availability(kind).message());
  if (kind == Kind::kHost) return "usable";
  std::string text =
      base::format("{} device{}", backend->num_devices(), backend->num_devices() == 1 ? "" : "s");
  for (int device = 0; device < backend->num_devices(); ++device) {
    text += base::format("{} {} {}", device == 0 ? ":" : ",", device, backend->device_name(device));
  }
  if (backend->num_devices() <= 1) return text;
  std::set<int> devices;
  for (int device = 0; device < backend->num_devices(); ++device) devices.insert(device);
  const std::string missing = unreachable_pairs(*backend, devices);
  return text + (missing.empty() ? "; peer access between all of them" : "; no peer access from " + missing);
}

}  // namespace

std::vector<std::string> report(Memory& memory) {
  std::vector<std::string> lines;
  for (int kind = 0; kind < kNumKinds; ++kind) {
    lines.push_back(base::format("memory {}: {}", kind_name(static_cast<Kind>(kind)),
                                 describe(memory, static_cast<Kind>(kind))));
  }
  return lines;
}

std::string peer_access_warning(Memory& memory, int num_local_pes) {
  for (int number = 0; number < kNumKinds; ++number) {
    const auto kind = static_cast<Kind>(number);
    const KindBackend* backend = memory.backend(kind);
    if (backend == nullptr) continue;
    std::set<int> devices;
    for (int rank = 0; rank < num_local_pes; ++rank) devices.insert(memory.default_place(kind, rank).device);
    const std::string missing = unreachable_pairs(*backend, devices);
    if (missing.empty()) continue;
    const std::string_view advice = backend->peer_access_advice();
    return base::format(
        "the {} devices of this job have no peer access from {}: messages between them pass through host "
        "memory, "
        "which is slower{}{}",
        kind_name(kind), missing, advice.empty() ? "" : "; ", advice);
  }
  return {};
}

}  // namespace weft::memory
