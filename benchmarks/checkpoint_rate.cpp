// How fast a checkpoint is written, beside what the disk does with plain files in the same run.
//
//   weft run -n 2 build/release/benchmarks/checkpoint_rate FOLDER [MIB_OF_EACH_PE [ELEMENTS_OF_EACH_PE [ROUNDS]]]
//
// In turns, because a disk's rate drifts: each PE replaces one plain file of as many bytes, with unlink(), write() and
// fsync(), and then a checkpoint is written, which removes an older one from the third on. Prints one line for each
// round and the medians. FOLDER is made and removed.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace {

using Clock = std::chrono::steady_clock;

std::string folder;
std::size_t mib = 256;
int elements = 4;
int rounds = 5;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Field : weft::Chare<Field> {
  explicit Field(weft::Moved) {}
  explicit Field(std::uint64_t num_values) : values(num_values) {
    std::uint64_t state = linear_index() + 1;  // no disk compresses it
    for (auto& value : values) value = state = state * 6364136223846793005 + 1442695040888963407;
  }
  void pup(weft::Pup& p) { p | values; }
  std::vector<std::uint64_t> values;
};

// Writes one file of the same bytes. On each PE at the same time.
struct Disk : weft::Chare<Disk> {
  void prepare(std::string path, std::uint64_t num_values) {
    path_ = path + "/plain-" + std::to_string(pe());
    bytes_.assign(num_values, 0x0123456789abcdef * static_cast<std::uint64_t>(pe() + 1));
  }
  void write(int times) {
    ::unlink(path_.c_str());  // of the round before, as a checkpoint removes an older one
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    for (int i = 0; i < times; ++i) {
      const char* at = reinterpret_cast<const char*>(bytes_.data());
      for (std::size_t left = bytes_.size() * sizeof(bytes_[0]); left > 0;) {
        const ssize_t count = ::write(file, at, std::min<std::size_t>(left, std::size_t{1} << 20));
        if (count <= 0) throw std::runtime_error("cannot write " + path_);
        at += count;
        left -= static_cast<std::size_t>(count);
      }
    }
    if (::fsync(file) != 0 || ::close(file) != 0) throw std::runtime_error("cannot write " + path_);
  }
  void remove() { ::unlink(path_.c_str()); }

 private:
  std::string path_;
  std::vector<std::uint64_t> bytes_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

weft::Task<> start(weft::Runtime& runtime) {
  const auto num_pes = runtime.num_pes();
  const std::uint64_t num_values = (mib << 20) / sizeof(std::uint64_t) / static_cast<std::uint64_t>(elements);
  const double megabytes =
      1e-6 * static_cast<double>(num_values * sizeof(std::uint64_t)) * elements * num_pes;
  std::filesystem::create_directories(folder);
  auto fields = weft::Array<Field>::create(runtime, elements * num_pes, num_values);
  auto disks = weft::Group<Disk>::create(runtime);
  co_await disks.call<&Disk::prepare>(folder, num_values);
  co_await fields.created();
  std::vector<double> plain;
  std::vector<double> saved;
  for (int round = 0; round < rounds; ++round) {
    auto begin = Clock::now();
    co_await disks.call<&Disk::write>(elements);
    plain.push_back(megabytes / seconds_since(begin));
    begin = Clock::now();
    co_await weft::checkpoint(runtime, folder, fields);
    saved.push_back(megabytes / seconds_since(begin));
    std::printf("%.0f MB: plain files %.0f MB/s, checkpoint %.0f MB/s\n", megabytes, plain.back(),
                saved.back());
  }
  const auto begin = Clock::now();
  weft::Array<Field> restored;
  co_await weft::restore(runtime, folder, restored);
  std::printf("restored with %.0f MB/s\n", megabytes / seconds_since(begin));
  std::printf("medians: plain files %.0f MB/s, checkpoint %.0f MB/s, %.0f %%\n", median(plain), median(saved),
              100 * median(saved) / median(plain));
  co_await disks.call<&Disk::remove>();
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: checkpoint_rate FOLDER [MIB_OF_EACH_PE [ELEMENTS_OF_EACH_PE [ROUNDS]]]\n");
    return 2;
  }
  folder = argv[1];
  if (argc > 2) mib = std::strtoul(argv[2], nullptr, 10);
  if (argc > 3) elements = std::max(1, std::stoi(argv[3]));
  if (argc > 4) rounds = std::max(1, std::stoi(argv[4]));
  if (std::filesystem::exists(folder)) {
    std::fprintf(stderr, "checkpoint_rate: %s exists; name a new folder, because it is removed at the end\n",
                 argv[1]);
    return 2;
  }
  return weft::run(argc, argv, start);
}
