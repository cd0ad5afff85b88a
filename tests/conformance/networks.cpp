#include "tests/conformance/networks.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>

namespace weft::conformance {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

}  // namespace

Networks::Networks() {
  const char* const text = std::getenv(kVariable);
  if (text == nullptr) return;
  std::istringstream files(text);
  for (std::string file; std::getline(files, file, ',');) {
    fds_.push_back(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (fds_.back() < 0) fail("the network namespace " + file);
  }
}

Networks::~Networks() {
  for (const int fd : fds_) close(fd);
}

void Networks::enter(int pe) {
  if (fds_.empty()) return;
  const int which = pe % static_cast<int>(fds_.size());
  if (which == entered_) return;
  if (setns(fds_[static_cast<std::size_t>(which)], CLONE_NEWNET) != 0) fail("entering a network namespace");
  entered_ = which;
}

}  // namespace weft::conformance
