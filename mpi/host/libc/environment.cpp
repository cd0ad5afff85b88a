// getenv() and its kin with an environment per rank.
//
// The C library works on the list that `environ` names. Before it does so for a rank, `environ` gets the rank's list. If the C
// library has changed it, the rank gets a copy of what is new in it: the C library takes the memory of a list back when it makes
// the next one.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "slots/rank_state.h"

namespace weft::mpi_host {

namespace {

// Makes the running rank's list that of the C library, and keeps what the C library has made of it.
class OwnEnvironment {
 public:
  OwnEnvironment() : state_(current_state()) {
    if (state_ == nullptr) return;
    environ = *state_->libc.environment;
  }
  // The C library has changed the list or an entry of it. What it has allocated becomes the rank's.
  void keep() {
    if (state_ == nullptr) return;
    state_->keep_environment(environ);
    environ = *state_->libc.environment;
  }
  OwnEnvironment(const OwnEnvironment&) = delete;
  OwnEnvironment& operator=(const OwnEnvironment&) = delete;

 private:
  RankState* state_;
};

// A forked process that calls exec() hands on the environment of its rank.
[[maybe_unused]] const int at_fork = pthread_atfork([] { const OwnEnvironment own; }, nullptr, nullptr);

}  // namespace

}  // namespace weft::mpi_host

using weft::mpi_host::OwnEnvironment;
using weft::mpi_host::replaced;

extern "C" {

char* getenv(const char* name) noexcept {
  const OwnEnvironment own;
  static auto* const form = replaced<char*(const char*)>("getenv");
  return form(name);
}

char* secure_getenv(const char* name) noexcept {
  const OwnEnvironment own;
  static auto* const form = replaced<char*(const char*)>("secure_getenv");
  return form(name);
}

int setenv(const char* name, const char* value, int overwrite) noexcept {
  OwnEnvironment own;
  const int result = replaced<int(const char*, const char*, int)>("setenv")(name, value, overwrite);
  own.keep();
  return result;
}

int putenv(char* text) noexcept {
  OwnEnvironment own;
  const int result = replaced<int(char*)>("putenv")(text);
  own.keep();
  return result;
}

int unsetenv(const char* name) noexcept {
  OwnEnvironment own;
  const int result = replaced<int(const char*)>("unsetenv")(name);
  own.keep();
  return result;
}

int clearenv() noexcept {
  OwnEnvironment own;
  const int result = replaced<int()>("clearenv")();
  own.keep();
  return result;
}

int system(const char* command) {
  const OwnEnvironment own;
  return replaced<int(const char*)>("system")(command);
}

FILE* popen(const char* command, const char* mode) {
  const OwnEnvironment own;
  return replaced<FILE*(const char*, const char*)>("popen")(command, mode);
}

}  // extern "C"
