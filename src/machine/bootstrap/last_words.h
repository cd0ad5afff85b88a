// The error messages of a PE without a launcher, on stderr.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

namespace weft::machine::bootstrap {

// One write, so that the messages of several PEs do not mix. The result is ignored: the process is about to end.
inline void print_last_words(std::string_view message) {
  std::string line(message);
  if (line.empty() || line.back() != '\n') line += '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace weft::machine::bootstrap
