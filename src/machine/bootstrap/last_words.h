// The error messages of a PE without a launcher, on stderr.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

namespace weft::machine::bootstrap {

// One write, so that the words of several PEs do not mix. Nobody is left to tell if it fails.
inline void print_last_words(std::string_view message) {
  std::string line(message);
  if (line.empty() || line.back() != '\n') line += '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace weft::machine::bootstrap
