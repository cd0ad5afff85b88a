#include "program/fixed_addresses.h"

#include <link.h>
#include <sys/personality.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace weft::mpi_host {

namespace {

constexpr unsigned long kAsk = 0xffffffff;

bool has_fixed_addresses() {
  const int now = personality(kAsk);
  return now != -1 && (static_cast<unsigned>(now) & ADDR_NO_RANDOMIZE) != 0;
}

// FNV-1a.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3U;
  }
  void add(std::uint64_t number) { add(std::as_bytes(std::span(&number, 1))); }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

std::uint64_t thread_pointer() {
  std::uint64_t pointer = 0;
  asm("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

}  // namespace

void restart_without_random_addresses(char** argv) {
  if (has_fixed_addresses()) return;
  const int now = personality(kAsk);
  if (now == -1 || personality(static_cast<unsigned>(now) | ADDR_NO_RANDOMIZE) == -1 ||
      !has_fixed_addresses())
    return;
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length > 0) execv(path.data(), argv);
  personality(static_cast<unsigned>(now));
}

const char* obstacle_to_fixed_addresses() {
  if (has_fixed_addresses()) return nullptr;
  return "the system gives each process other addresses, and does not let it choose (personality)";
}

std::uint64_t fingerprint_of_addresses(const Program& program) {
  Hash hash;
  hash.add(program.file().bytes());
  hash.add(thread_pointer());
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        // The kernel's own part: the C library alone calls it.
        if (std::string_view(info->dlpi_name).starts_with("linux-vdso")) return 0;
        static_cast<Hash*>(context)->add(info->dlpi_addr);
        return 0;
      },
      &hash);
  return hash.value();
}

}  // namespace weft::mpi_host
