#include "checkpoint/folder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "weft/base/error.h"

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

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw base::Error(base::StatusCode::kUnsupported,
                      base::format("cannot read the folder {}: {}", folder, error.message()));
  }
  return names;
}

void rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) throw_system_error("rename", from);
}

// Removes a folder that is no complete checkpoint. Failures are ignored: a folder that stays only takes room.
void remove_partial(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// Makes the folder and those above it, and returns when they are on the disk.
void make_folder(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> parents;  // of those that are made
  for (fs::path at = fs::absolute(folder); !fs::exists(at, error) && at.has_relative_path();
       at = at.parent_path()) {
    parents.push_back(at.parent_path().string());
  }
  fs::create_directories(folder, error);
  if (error) {
    throw base::Error(base::StatusCode::kUnsupported,
                      base::format("cannot make the folder {}: {}", folder, error.message()));
  }
  for (const std::string& parent : parents) sync_folder(parent);
}

}  // namespace

std::vector<std::uint64_t> checkpoints_in(const std::string& folder) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names_in(folder)) {
    if (const auto number = number_of(name)) numbers.push_back(*number);
  }
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

std::string checkpoint_path(const std::string& folder, std::uint64_t number) {
  return base::format("{}/{}{}", folder, kPrefix, number);
}

Manifest open_checkpoint(const std::string& path) {
  Manifest manifest = read_manifest(path + "/" + kManifestName);
  for (std::size_t pe = 0; pe < manifest.files.size(); ++pe) {
    const std::string file_path = path + "/" + element_file_name(pe);
    const std::uint64_t size_bytes = DiskFile::open(file_path).size_bytes();
    if (size_bytes == manifest.files[pe].file_bytes()) continue;
    throw base::Error(base::StatusCode::kCorrupt,
                      base::format("the checkpoint file {} is damaged: it has {} bytes instead of {}",
                                   file_path, size_bytes, manifest.files[pe].file_bytes()));
  }
  return manifest;
}

NewCheckpoint::NewCheckpoint(const std::string& folder) : folder_(folder) {
  std::error_code error;
  make_folder(folder);
  lock_ = DiskFile::create(folder + "/lock");
  if (!lock_.try_lock()) {
    throw base::Error(base::StatusCode::kClosed,
                      base::format("another checkpoint is being written into {}; write one at a time, and "
                                   "give each job a folder of its own",
                                   folder));
  }
  for (const std::string& name : names_in(folder)) {
    if (name.starts_with(kPrefix) && name.ends_with(kPartial)) {
      remove_partial(base::format("{}/{}", folder, name));
    }
  }
  for (std::string name : names_in(folder)) {
    if (name.ends_with(kDamaged)) name.resize(name.size() - kDamaged.size());
    number_ = std::max(number_, number_of(name).value_or(0) + 1);
  }
  partial_path_ = checkpoint_path(folder, number_) + std::string(kPartial);
  fs::create_directory(partial_path_, error);
  if (error) {
    throw base::Error(base::StatusCode::kUnsupported,
                      base::format("cannot make the folder {}: {}", partial_path_, error.message()));
  }
}

void set_damaged_aside(const std::string& path) {
  static_cast<void>(std::rename(path.c_str(), (path + std::string(kDamaged)).c_str()));
}

NewCheckpoint::~NewCheckpoint() {
  if (!is_published_) remove_partial(partial_path_);
}

void NewCheckpoint::publish(const Manifest& manifest) {
  write_manifest(partial_path_ + "/" + kManifestName, manifest);
  sync_folder(partial_path_);
  rename(partial_path_, checkpoint_path(folder_, number_));
  is_published_ = true;
  sync_folder(folder_);
  const std::vector<std::uint64_t> numbers = checkpoints_in(folder_);
  for (std::size_t i = kKeptCheckpoints; i < numbers.size(); ++i) {
    const std::string path = checkpoint_path(folder_, numbers[i]);
    rename(path, path + std::string(kPartial));
    remove_partial(path + std::string(kPartial));
  }
}

}  // namespace weft::checkpoint_files
