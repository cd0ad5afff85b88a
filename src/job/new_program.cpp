#include "job/new_program.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "checkpoint/state_file.h"
#include "job/drain_signal.h"
#include "machine/bootstrap/bootstrap.h"

namespace weft::job {

namespace {

const char kStateVariable[] = "WEFT_PROTECTED_STATE";

// The texts of a file in which each ends with a zero byte.
std::vector<std::string> texts_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> texts;
  for (std::string text; std::getline(file, text, '\0');) texts.push_back(text);
  return texts;
}

// With the equals sign.
std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=') + 1); }

// That of the begin of this process: ranks of a program change `environ`.
std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> all = texts_of("/proc/self/environ");
  for (const std::string& variable : variables) {
    std::erase_if(all, [&](const std::string& other) { return name_of(other) == name_of(variable); });
    all.push_back(variable);
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// All but those and the standard ones.
void close_others_on_exec(const std::array<int, 2>& kept) {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* const entry = readdir(folder)) {
    const std::string_view name = static_cast<const char*>(entry->d_name);
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (descriptor > STDERR_FILENO && std::ranges::find(kept, descriptor) == kept.end())
      fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  }
  closedir(folder);
}

std::string path_of_program() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "/proc/self/exe";
}

}  // namespace

base::Status take_handed_over(checkpoint_files::ProtectedState& state) {
  const char* const text = std::getenv(kStateVariable);
  if (text == nullptr) return {};
  int descriptor = -1;
  std::from_chars(text, text + std::strlen(text), descriptor);
  unsetenv(kStateVariable);
  base::Status status = checkpoint_files::read_state_file(descriptor, state);
  if (status.ok()) close(descriptor);
  return status;
}

base::Status start_program_anew(int state, int folder, const sigset_t& blocked) {
  machine::NextProgram next = machine::next_program();
  next.variables.push_back(base::format("{}={}", kStateVariable, state));
  sigset_t signals = blocked;
  next.variables.push_back(DrainSignal::hold(signals));
  std::vector<std::string> environment = environment_with(next.variables);
  std::vector<std::string> words = texts_of("/proc/self/cmdline");
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> settings = pointers_to(environment);
  std::fflush(nullptr);
  close_others_on_exec({next.connection, state});
  if (folder >= 0 && fchdir(folder) != 0)
    return {base::StatusCode::kUnsupported,
            base::format("its first folder cannot be entered: {}", std::strerror(errno))};
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
  execve(path_of_program().c_str(), arguments.data(), settings.data());
  return {base::StatusCode::kUnsupported, base::format("exec: {}", std::strerror(errno))};
}

}  // namespace weft::job
