#include "machine/ucx/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "machine/ucx/context.h"
#include "machine/ucx/library.h"

namespace weft::machine::ucx {
namespace {

// UCX tells what it opened only as text for people: lines like "#  resource 0 : md 0 dev 0 flags --
// self/memory".
std::set<std::string> transports(const Context& context) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return {};
  ucp_context_print_info(context.get(), stream);
  std::fclose(stream);
  std::istringstream lines(std::string(text, size));
  std::free(text);
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("resource") == std::string::npos || line.find('/') == std::string::npos) continue;
    names.insert(line.substr(line.find_last_of(' ') + 1));
  }
  return names;
}

}  // namespace

std::vector<std::string> report() {
  std::vector<std::string> lines = {fmt::format("UCX {} from {}", library_version(), library_path())};
  base::Result<Context> context = Context::create({});
  if (!context.ok()) {
    lines.push_back(context.status().to_string());
    return lines;
  }
  lines.push_back(fmt::format("UCX transports within a host: {}", fmt::join(transports(*context), " ")));
  lines.push_back(fmt::format(
      "UCX moves device memory by itself: {}",
      context->can_address(memory::Kind::kCuda) ? "cuda" : "none; it is staged through the host"));
  return lines;
}

}  // namespace weft::machine::ucx
