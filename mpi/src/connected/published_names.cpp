#include "connected/published_names.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "weft/mpi/mpi.h"

#include "base/format.h"

namespace weft::mpi {

namespace {

// A process number, a space, and the port.
struct Entry {
  pid_t process = 0;
  std::string port;
};

Error no_folder(const std::string& folder, const char* why) {
  return {
      MPI_ERR_SERVICE,
      base::format("the folder {} of published names is not to be used: {}; set XDG_RUNTIME_DIR to a folder "
                   "of this user",
                   folder, why)};
}

// The folder, which nobody else may enter or write.
Error find_folder(std::string* folder) {
  const char* const parent = std::getenv("XDG_RUNTIME_DIR");
  *folder =
      base::format("{}/weft-names-{}", parent != nullptr && *parent == '/' ? parent : "/tmp", geteuid());
  if (mkdir(folder->c_str(), 0700) != 0 && errno != EEXIST) return no_folder(*folder, std::strerror(errno));
  struct stat status{};
  if (lstat(folder->c_str(), &status) != 0) return no_folder(*folder, std::strerror(errno));
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
    return no_folder(*folder, "it belongs to others, or others may use it");
  return {};
}

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

Error find_path(const std::string& service, std::string* path) {
  std::string folder;
  if (Error error = find_folder(&folder); !error.ok()) return error;
  *path = folder + "/" + file_name(service);
  return {};
}

// Returns whether there is an entry of a process that runs. Removes one of a process that has ended.
bool read_entry(const std::string& path, Entry* entry) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  std::array<char, MPI_MAX_PORT_NAME + 32> text{};
  const ssize_t size = read(fd, text.data(), text.size());
  close(fd);
  const std::string_view all(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  const std::size_t space = all.find(' ');
  if (space == std::string_view::npos) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + space, entry->process);
  entry->port = all.substr(space + 1);
  if (error == std::errc() && entry->process > 0 && (kill(entry->process, 0) == 0 || errno == EPERM))
    return true;
  unlink(path.c_str());
  return false;
}

}  // namespace

// The file appears whole, and only if there is none: a link to one that has been written.
Error publish_name(const std::string& service, const std::string& port) {
  std::string path;
  if (Error error = find_path(service, &path); !error.ok()) return error;
  Entry other;
  if (read_entry(path, &other))
    return {MPI_ERR_SERVICE, base::format("process {} has published the name '{}'", other.process, service)};
  const std::string written = base::format("{}.{}", path, getpid());
  const std::string text = base::format("{} {}", getpid(), port);
  const int fd = open(written.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return {MPI_ERR_SERVICE, base::format("{}: {}", written, std::strerror(errno))};
  const bool is_written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  const bool is_published = is_written && link(written.c_str(), path.c_str()) == 0;
  const int why = errno;
  unlink(written.c_str());
  if (is_published) return {};
  return {MPI_ERR_SERVICE, base::format("the name '{}' is not published: {}", service, std::strerror(why))};
}

Error unpublish_name(const std::string& service) {
  std::string path;
  if (Error error = find_path(service, &path); !error.ok()) return error;
  Entry entry;
  if (read_entry(path, &entry) && entry.process == getpid() && unlink(path.c_str()) == 0) return {};
  return {MPI_ERR_SERVICE, base::format("this process has not published the name '{}'", service)};
}

Error look_up_name(const std::string& service, std::string* port) {
  std::string path;
  if (Error error = find_path(service, &path); !error.ok()) return error;
  Entry entry;
  if (!read_entry(path, &entry))
    return {MPI_ERR_NAME,
            base::format("no process of this user on this host has published the name '{}'", service)};
  *port = std::move(entry.port);
  return {};
}

}  // namespace weft::mpi
