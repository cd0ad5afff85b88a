#include "machine/ucx/report.h"

#include <string>

#include "base/format.h"
#include "machine/ucx/handles/context.h"
#include "machine/ucx/setup/library.h"

namespace weft::machine::ucx {
std::vector<std::string> report() {
  std::vector<std::string> lines = {base::format("UCX {} from {}", library_version(), library_path())};
  base::Result<Context> context = Context::create({});
  if (!context.ok()) {
    lines.push_back(context.status().to_string());
    return lines;
  }
  std::string transports;
  for (const std::string& transport : context->transports()) transports += " " + transport;
  lines.push_back(base::format("UCX transports within a host:{}", transports));
  lines.push_back(base::format(
      "UCX moves device memory by itself: {}",
      context->can_address(memory::NativeApi::kCuda) ? "cuda" : "none; it is staged through the host"));
  return lines;
}

}  // namespace weft::machine::ucx
