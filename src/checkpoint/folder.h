// The checkpoints of one folder.
//
//   FOLDER/checkpoint-7/{manifest, elements-0, elements-1, ...}   a checkpoint
//   FOLDER/checkpoint-8.partial/                                  one that is being written, or a job's that was killed
//   FOLDER/checkpoint-6.damaged/                                  one that restore has refused
//   FOLDER/lock                                                   locked while a checkpoint is written
//
// A checkpoint appears under its name by a rename, after all of its files are on the disk. One that is removed is renamed
// first. So a folder with a checkpoint's name has all files, unless the disk or a person has changed them.
//
// Threads: one at a time; several processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/disk_file.h"
#include "checkpoint/manifest.h"

namespace weft::checkpoint_files {

// How many checkpoints stay when a new one is complete, this one included: if the newest turns out to be damaged, there is
// another.
inline constexpr std::size_t kKeptCheckpoints = 2;

// The numbers of the checkpoints, the newest first. Empty if there is no such folder.
base::Result<std::vector<std::uint64_t>> checkpoints_in(const std::string& folder);
std::string checkpoint_path(const std::string& folder, std::uint64_t number);
// Reads the manifest and compares the sizes of the files. Fails, and names the file, if something is wrong.
base::Result<Manifest> open_checkpoint(const std::string& path);

// Renames it, so that it does not count as one of the checkpoints that stay. Does nothing if that is not possible.
void set_damaged_aside(const std::string& path);

// A checkpoint that is being written. Removed again unless publish() is called.
class NewCheckpoint {
 public:
  // Makes the folder if there is none. Fails with kClosed if another checkpoint into it is being written.
  static base::Result<std::unique_ptr<NewCheckpoint>> begin(const std::string& folder);
  ~NewCheckpoint();
  NewCheckpoint(const NewCheckpoint&) = delete;
  NewCheckpoint& operator=(const NewCheckpoint&) = delete;

  // Where the element files belong.
  const std::string& partial_path() const { return partial_path_; }
  // Makes it a checkpoint, and removes all but the newest kKeptCheckpoints. REQUIRES: the element files are on the disk.
  base::Status publish(const Manifest& manifest);

 private:
  NewCheckpoint(const std::string& folder, DiskFile lock) : folder_(folder), lock_(std::move(lock)) {}
  // Removes what others have left, and makes the folder of the files.
  base::Status make_partial();

  std::string folder_;
  DiskFile lock_;
  std::uint64_t number_ = 1;
  std::string partial_path_;
  bool is_published_ = false;
};

}  // namespace weft::checkpoint_files
