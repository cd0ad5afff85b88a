// The state of a job that its PEs have protected in memory, on one PE: blocks with its own elements and those of other PEs, and the
// manifest of the newest state that all PEs have. It belongs to the process and outlives the incarnations of its job
// (docs/decisions/recovery.md). A block has the format of an element file.
//
// A state begins with blocks. It counts from commit() on; until then the one before stays.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/storage.h"

namespace weft::checkpoint_files {

// Bytes that are written once, and not cleared before: fresh bytes have no value.
class Block {
 public:
  Block() = default;
  explicit Block(std::size_t size_bytes);

  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return size_bytes_; }
  // Room for that many bytes in all. They move if there is less.
  void reserve(std::size_t room_bytes);
  void append(const void* bytes, std::size_t size_bytes);
  // Gives room back, if there is much.
  void release_room();

 private:
  void move_to(std::size_t room_bytes);

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_bytes_ = 0;
  std::size_t room_bytes_ = 0;
};

using BlockPtr = std::shared_ptr<const Block>;

// Appends to a block.
class BlockSink final : public ByteSink {
 public:
  explicit BlockSink(Block& block) : block_(block) {}
  base::Status write(const void* data, std::size_t size_bytes) override;
  base::Status finish() override;
  bool needs_checksums() const override { return false; }

 private:
  Block& block_;
};

class BlockSource final : public ByteSource {
 public:
  BlockSource(BlockPtr block, std::string name) : block_(std::move(block)), name_(std::move(name)) {}
  const std::string& path() const override { return name_; }
  base::Result<std::uint64_t> size_bytes() const override { return std::uint64_t{block_->size()}; }
  base::Status read(std::uint64_t offset, void* data, std::size_t size_bytes) const override;
  bool needs_checksums() const override { return false; }

 private:
  BlockPtr block_;
  std::string name_;
};

class ProtectedState {
 public:
  // The number of a state has the incarnation in which it was written, from this bit on.
  static constexpr int kIncarnationShift = 40;

  // Names a block: the state's number, and the PE whose elements it has.
  struct BlockId {
    std::uint64_t state = 0;
    std::uint32_t pe = 0;
    auto operator<=>(const BlockId&) const = default;
    void pup(Pup& p) { p | state | pe; }
  };

  // Replaces a block of that name.
  void put(const BlockId& id, BlockPtr block) { blocks_[id] = std::move(block); }
  // Null if there is none.
  BlockPtr find(const BlockId& id) const;
  // An empty block with room for as much as the committed one of that PE has.
  std::shared_ptr<Block> begin_block(std::uint32_t pe) const;
  std::vector<BlockId> block_ids() const;
  // Drops the blocks of a state that is not committed.
  void drop(std::uint64_t state);
  // All PEs have all their blocks of the state. Drops the one before and those of earlier incarnations; what another PE has begun to
  // protect stays until drop().
  void commit(std::uint64_t state, Manifest manifest);
  // As commit(), and drops nothing: for a state that another program of this process has committed.
  void set_committed(std::uint64_t state, Manifest manifest);

  // 0 if there is none.
  std::uint64_t committed() const { return committed_; }
  const Manifest& manifest() const { return manifest_; }

  // --- Of the job. Set by it for each incarnation.
  std::uint32_t incarnation = 0;
  // The newest state that the launcher knows to be protected; 0 for none.
  std::uint64_t known_to_launcher = 0;
  // Is called on the PE that has led, when all PEs have committed. `plan`: that of a resize, for which PEs that stay have all blocks; or 0.
  std::function<void(std::uint64_t state, std::uint32_t plan)> on_protected;
  // Another number of PEs, which the launcher gives the job when a state is protected for it.
  struct ResizePlan {
    std::uint32_t number = 0;  // 0: there is none
    std::uint32_t num_pes = 0;
    std::vector<std::uint32_t> leaving;  // PEs
  };
  std::function<ResizePlan()> resize_plan;
  std::function<void(std::uint32_t plan, const std::string& why)> refuse_resize;
  std::function<base::Status(std::uint32_t num_pes)> ask_for_resize;

 private:
  std::map<BlockId, BlockPtr> blocks_;
  std::uint64_t committed_ = 0;
  Manifest manifest_;
};

}  // namespace weft::checkpoint_files
