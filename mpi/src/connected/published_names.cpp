#include "connected/published_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "weft/mpi/mpi.h"

#include "base/format.h"

namespace weft::mpi {

namespace {

// The text of a file: the process that has published the name, when it started, and the port, with a space between them.
struct Entry {
  pid_t process = 0;
  std::uint64_t start = 0;
  std::string port;
};

Error no_folder(const std::string& folder, const char* why) {
  return {
      MPI_ERR_SERVICE,
      base::format("the folder {} of published names is not to be used: {}; set XDG_RUNTIME_DIR to a folder "
                   "of this user",
                   folder, why)};
}

// The folder, which nobody else may enter or write. One process at a time reads and changes names in it.
class NamesFolder {
 public:
  NamesFolder() = default;
  NamesFolder(const NamesFolder&) = delete;
  NamesFolder& operator=(const NamesFolder&) = delete;
  ~NamesFolder() {
    if (fd_ >= 0) close(fd_);
  }

  // Waits until no other process uses it.
  Error open() {
    const char* const parent = std::getenv("XDG_RUNTIME_DIR");
    path_ =
        base::format("{}/weft-names-{}", parent != nullptr && *parent == '/' ? parent : "/tmp", geteuid());
    if (mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) return no_folder(path_, std::strerror(errno));
    fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd_ < 0) return no_folder(path_, std::strerror(errno));
    struct stat status{};
    if (fstat(fd_, &status) != 0) return no_folder(path_, std::strerror(errno));
    if (status.st_uid != geteuid() || (status.st_mode & 077) != 0)
      return no_folder(path_, "it belongs to others, or others may use it");
    while (flock(fd_, LOCK_EX) != 0)
      if (errno != EINTR) return no_folder(path_, std::strerror(errno));
    return {};
  }

  // Returns whether there is an entry of a process that runs. Removes another one.
  bool read(const std::string& name, Entry* entry) const;
  Error write(const std::string& name, const Entry& entry) const;
  bool remove(const std::string& name) const { return unlinkat(fd_, name.c_str(), 0) == 0; }
  // The entries of processes that have ended.
  void remove_old() const;

 private:
  std::string path_;
  int fd_ = -1;
};

// The letters and digits of the name, which people may look for, and a number for all of it.
std::string file_name(const std::string& service) {
  std::string name;
  std::uint64_t number = 0xcbf29ce484222325U;
  for (const char c : service) {
    number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_plain && name.size() < 64) name += c;
  }
  return base::format("{}-{:016x}-{}", name, number, service.size());
}

// When the process started, in ticks since the start of the system: another process may get its number. 0 if there is none.
std::uint64_t start_of(pid_t process) {
  std::ifstream file(base::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  // Behind the name in brackets, which may have any characters: the 20th word.
  std::istringstream words(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::uint64_t start = 0;
  for (int i = 0; i < 19; ++i) words >> text;
  words >> start;
  return start;
}

bool NamesFolder::read(const std::string& name, Entry* entry) const {
  const int fd = openat(fd_, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  std::array<char, MPI_MAX_PORT_NAME + 64> text{};
  const ssize_t size = ::read(fd, text.data(), text.size() - 1);
  close(fd);
  std::istringstream words(std::string(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size)));
  words >> entry->process >> entry->start;
  words.get();
  if (words && entry->process > 0 && entry->start == start_of(entry->process) &&
      std::getline(words, entry->port))
    return true;
  remove(name);
  return false;
}

Error NamesFolder::write(const std::string& name, const Entry& entry) const {
  const std::string text = base::format("{} {} {}", entry.process, entry.start, entry.port);
  const int fd = openat(fd_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return {MPI_ERR_SERVICE, base::format("{}/{}: {}", path_, name, std::strerror(errno))};
  const bool is_written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int why = errno;
  close(fd);
  if (is_written) return {};
  remove(name);
  return {MPI_ERR_SERVICE, base::format("{}/{}: {}", path_, name, std::strerror(why))};
}

void NamesFolder::remove_old() const {
  DIR* const folder = opendir(path_.c_str());
  if (folder == nullptr) return;
  Entry entry;
  while (const dirent* const one = readdir(folder)) {
    if (one->d_name[0] != '.') read(one->d_name, &entry);
  }
  closedir(folder);
}

}  // namespace

Error publish_name(const std::string& service, const std::string& port) {
  NamesFolder folder;
  if (Error error = folder.open(); !error.ok()) return error;
  folder.remove_old();
  Entry other;
  const std::string name = file_name(service);
  if (folder.read(name, &other))
    return {MPI_ERR_SERVICE, base::format("process {} has published the name '{}'", other.process, service)};
  return folder.write(name, {getpid(), start_of(getpid()), port});
}

Error unpublish_name(const std::string& service) {
  NamesFolder folder;
  if (Error error = folder.open(); !error.ok()) return error;
  Entry entry;
  const std::string name = file_name(service);
  if (folder.read(name, &entry) && entry.process == getpid() && folder.remove(name)) return {};
  return {MPI_ERR_SERVICE, base::format("this process has not published the name '{}'", service)};
}

Error look_up_name(const std::string& service, std::string* port) {
  NamesFolder folder;
  if (Error error = folder.open(); !error.ok()) return error;
  Entry entry;
  if (!folder.read(file_name(service), &entry))
    return {MPI_ERR_NAME,
            base::format("no process of this user on this host has published the name '{}'", service)};
  *port = std::move(entry.port);
  return {};
}

}  // namespace weft::mpi
