#include "objects/hints.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "memory/memory.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

// Decimal, or hexadecimal after "0x".
Error parse_stream(const std::string& text, memory::StreamHandle* stream) {
  const char* const first = text.c_str();
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(first, &end, 0);
  const bool is_number = *first >= '0' && *first <= '9' && *end == '\0' && errno == 0;
  if (!is_number)
    return {MPI_ERR_INFO_VALUE,
            base::format("weft_stream is '{}'; give the address of a stream as a number, or 0", text)};
  *stream = reinterpret_cast<memory::StreamHandle>(static_cast<std::uintptr_t>(number));
  return {};
}

}  // namespace

Error use_hints(Communicator& communicator, const Info::Pairs& hints) {
  memory::StreamHandle stream = nullptr;
  for (const auto& [key, value] : hints) {
    if (key != "weft_stream") continue;
    if (Error error = parse_stream(value, &stream); !error.ok()) return error;
  }
  communicator.info = hints;
  communicator.stream = stream;
  return {};
}

void set_hint(Info::Pairs& pairs, std::string_view key, std::string_view value) {
  const auto found = std::ranges::find(pairs, key, &Info::Pairs::value_type::first);
  if (found == pairs.end()) {
    pairs.emplace_back(key, value);
  } else {
    found->second = value;
  }
}

Info::Pairs with_memory_kinds(Info::Pairs hints) {
  const bool has_cuda = this_process().runtime().memory().backend(memory::Kind::kCuda) != nullptr;
  set_hint(hints, "mpi_memory_alloc_kinds", has_cuda ? "mpi,system,cuda" : "mpi,system");
  return hints;
}

}  // namespace weft::mpi
