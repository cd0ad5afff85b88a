#include "checkpoint/folder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/format.h"

namespace weft::checkpoint_files {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kPartial = ".partial";

constexpr std::string_view kDamaged = ".damaged";

// The number in "checkpoint-7".
std::optional<std::uint64_t> number_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  if (error != std::errc() || end != name.data() + name.size() || number > kMost) return std::nullopt;
  return number;
}

base::Result<std::vector<std::string>> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::Status(base::StatusCode::kUnsupported,
                        base::format("cannot read the folder {}: {}", folder, error.message()));
  }
  return names;
}

base::Status rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? base::Status() : system_error("rename", from);
}

base::Status cannot_make(const std::string& folder, const std::error_code& error) {
  return {base::StatusCode::kUnsupported,
          base::format("cannot make the folder {}: {}", folder, error.message())};
}

// Removes a folder that is no complete checkpoint. Failures are ignored: a folder that stays only takes room.
void remove_partial(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// Makes the folder and those above it, and returns when they are on the disk.
base::Status make_folder(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> parents;  // of those that are made
  for (fs::path at = fs::absolute(folder); !fs::exists(at, error) && at.has_relative_path();
       at = at.parent_path()) {
    parents.push_back(at.parent_path().string());
  }
  fs::create_directories(folder, error);
  if (error) return cannot_make(folder, error);
  for (const std::string& parent : parents) {
    if (base::Status status = sync_folder(parent); !status.ok()) return status;
  }
  return {};
}

}  // namespace

base::Result<std::vector<std::uint64_t>> checkpoints_in(const std::string& folder) {
  const base::Result<std::vector<std::string>> names = names_in(folder);
  if (!names.ok()) return names.status();
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names.value()) {
    if (const auto number = number_of(name)) numbers.push_back(*number);
  }
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

std::string checkpoint_path(const std::string& folder, std::uint64_t number) {
  return base::format("{}/{}{}", folder, kPrefix, number);
}

base::Result<Manifest> open_checkpoint(const std::string& path) {
  base::Result<Manifest> manifest = read_manifest(path + "/" + kManifestName);
  if (!manifest.ok()) return manifest;
  for (std::size_t pe = 0; pe < manifest->files.size(); ++pe) {
    const std::string file_path = path + "/" + element_file_name(pe);
    const base::Result<DiskFile> file = DiskFile::open(file_path);
    if (!file.ok()) return file.status();
    const base::Result<std::uint64_t> size_bytes = file.value().size_bytes();
    if (!size_bytes.ok()) return size_bytes.status();
    if (size_bytes.value() == manifest->files[pe].file_bytes()) continue;
    return base::Status(base::StatusCode::kCorrupt,
                        base::format("the checkpoint file {} is damaged: it has {} bytes instead of {}",
                                     file_path, size_bytes.value(), manifest->files[pe].file_bytes()));
  }
  return manifest;
}

base::Result<std::unique_ptr<NewCheckpoint>> NewCheckpoint::begin(const std::string& folder) {
  if (base::Status status = make_folder(folder); !status.ok()) return status;
  base::Result<DiskFile> lock = DiskFile::create(folder + "/lock");
  if (!lock.ok()) return lock.status();
  const base::Result<bool> is_locked = lock->try_lock();
  if (!is_locked.ok()) return is_locked.status();
  if (!is_locked.value()) {
    return base::Status(base::StatusCode::kClosed,
                        base::format("another checkpoint is being written into {}; write one at a time, and "
                                     "give each job a folder of its own",
                                     folder));
  }
  std::unique_ptr<NewCheckpoint> made(new NewCheckpoint(folder, std::move(*lock)));
  if (base::Status status = made->make_partial(); !status.ok()) return status;
  return made;
}

base::Status NewCheckpoint::make_partial() {
  const base::Result<std::vector<std::string>> names = names_in(folder_);
  if (!names.ok()) return names.status();
  for (std::string name : names.value()) {
    if (name.starts_with(kPrefix) && name.ends_with(kPartial)) {
      remove_partial(base::format("{}/{}", folder_, name));
      continue;
    }
    if (name.ends_with(kDamaged)) name.resize(name.size() - kDamaged.size());
    number_ = std::max(number_, number_of(name).value_or(0) + 1);
  }
  partial_path_ = checkpoint_path(folder_, number_) + std::string(kPartial);
  std::error_code error;
  fs::create_directory(partial_path_, error);
  return error ? cannot_make(partial_path_, error) : base::Status();
}

void set_damaged_aside(const std::string& path) {
  static_cast<void>(std::rename(path.c_str(), (path + std::string(kDamaged)).c_str()));
}

NewCheckpoint::~NewCheckpoint() {
  if (!is_published_) remove_partial(partial_path_);
}

base::Status NewCheckpoint::publish(const Manifest& manifest) {
  base::Status status = write_manifest(partial_path_ + "/" + kManifestName, manifest);
  if (status.ok()) status = sync_folder(partial_path_);
  if (status.ok()) status = rename(partial_path_, checkpoint_path(folder_, number_));
  if (!status.ok()) return status;
  is_published_ = true;
  if (status = sync_folder(folder_); !status.ok()) return status;
  const base::Result<std::vector<std::uint64_t>> numbers = checkpoints_in(folder_);
  if (!numbers.ok()) return numbers.status();
  for (std::size_t i = kKeptCheckpoints; i < numbers.value().size(); ++i) {
    const std::string path = checkpoint_path(folder_, numbers.value()[i]);
    if (status = rename(path, path + std::string(kPartial)); !status.ok()) return status;
    remove_partial(path + std::string(kPartial));
  }
  return {};
}

}  // namespace weft::checkpoint_files
