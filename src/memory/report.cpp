#include "memory/report.h"

#include <fmt/format.h>

namespace weft::memory {
namespace {

std::string describe(Memory& memory, Kind kind) {
  KindBackend* backend = memory.backend(kind);
  if (backend == nullptr) return fmt::format("not usable: {}", memory.availability(kind).message());
  if (kind == Kind::kHost) return "usable";
  std::string text =
      fmt::format("{} device{}", backend->num_devices(), backend->num_devices() == 1 ? "" : "s");
  for (int device = 0; device < backend->num_devices(); ++device) {
    text += fmt::format("{} {} {}", device == 0 ? ":" : ",", device, backend->device_name(device));
  }
  return text;
}

}  // namespace

std::vector<std::string> report(Memory& memory) {
  std::vector<std::string> lines;
  for (int kind = 0; kind < kNumKinds; ++kind) {
    lines.push_back(fmt::format("memory {}: {}", kind_name(static_cast<Kind>(kind)),
                                describe(memory, static_cast<Kind>(kind))));
  }
  return lines;
}

}  // namespace weft::memory
