// The parts of the main programs that the mini-apps share.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include "weft/weft.h"

#include "command_line/user_error.h"

namespace miniapps {

// A line of output, visible at once.
inline void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

// Runs a program on PE 0 alone, so that a mistake is reported once. `solve` returns whether the results are right. The job's exit
// code is 0 if they are, 1 if not, and 2 for a UserError.
inline weft::Task<> run(weft::Runtime& runtime, const char* name, weft::Task<bool> solve) {
  int code = 0;
  try {
    const bool is_right = co_await std::move(solve);
    code = is_right ? 0 : 1;
  } catch (const UserError& error) {
    std::fprintf(stderr, "%s: %s (see %s --help)\n", name, error.what(), name);
    code = 2;
  }
  runtime.exit(code);
}

}  // namespace miniapps
