// A library to preload: kills its process when UCX has made a shared-memory segment and is about to remove its
// name, the only moment at which a killed PE leaves the segment behind.
//
// WEFT_TEST_DIE_IN says which segment: "posix" or "sysv".
#include <dlfcn.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

void die_in(const char* kind) {
  const char* wanted = std::getenv("WEFT_TEST_DIE_IN");
  if (wanted != nullptr && std::strcmp(wanted, kind) == 0) kill(getpid(), SIGKILL);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int unlink(const char* path) noexcept {
  if (std::strstr(path, "ucx_shm_posix_") != nullptr) die_in("posix");
  return next<int(const char*)>("unlink")(path);
}

extern "C" int shm_unlink(const char* path) {
  if (std::strstr(path, "ucx_shm_posix_") != nullptr) die_in("posix");
  return next<int(const char*)>("shm_unlink")(path);
}

extern "C" int shmctl(int identifier, int command, struct shmid_ds* state) noexcept {
  if (command == IPC_RMID) die_in("sysv");
  return next<int(int, int, struct shmid_ds*)>("shmctl")(identifier, command, state);
}
