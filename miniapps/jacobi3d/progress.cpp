#include "progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "fmt/format.h"

namespace jacobi3d {
namespace {

void write_line(const std::string& line) {
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

bool progress_is_visible() { return isatty(STDERR_FILENO) == 1; }

ProgressBar::ProgressBar(std::string title, int num_iterations)
    : title_(std::move(title)), num_iterations_(num_iterations) {}

void ProgressBar::advance(int iterations_done) {
  constexpr int kWidth = 40;
  auto filled = static_cast<std::size_t>(static_cast<long>(kWidth) * iterations_done / num_iterations_);
  write_line(fmt::format("\r{:<10}[{:<{}}] {}/{}", title_, std::string(filled, '='), kWidth, iterations_done,
                         num_iterations_));
}

void ProgressBar::clear() { write_line("\r\x1b[K"); }

}  // namespace jacobi3d
