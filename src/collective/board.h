// Board: memory in which a PE puts blocks for other PEs of its host, which read them there. Boards: this PE's board, and those it reads.
//
//     owner    post() copies the block, and a message tells the reader where it is
//     reader   read() finds it, and release() says that it has been read
//
// A block is copied once, however many members read it. The memory is used in a circle: what is read is free when all before it is.
// A board without room, or a reader that may not open files of the owner, is no failure: then the block travels in the message.
//
// Threads: the PE's. What a peer writes into a reference is a claim; it is checked. The owner's book of what is free is its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/shared_mapping.h"

namespace weft::collective {

// Where a block is, as it travels in a message.
struct BoardReference {
  base::SharedMappingName board;
  std::uint64_t offset_bytes = 0;  // of what counts its readers; the block is behind
  std::uint64_t size_bytes = 0;
};
static_assert(std::has_unique_object_representations_v<BoardReference>, "padding would travel");

class Boards {
 public:
  // Blocks of up to that size travel in the message, which costs no more copies: see MessageRing.
  static constexpr std::size_t kMostSentBytes = 1024;
  // Of a board. Pages that are not used take no memory.
  static constexpr std::size_t kBoardBytes = std::size_t{4} << 20;

  explicit Boards(int num_pes) : peers_(static_cast<std::size_t>(num_pes)) {}

  // That PE is on another host.
  void post_none_for(int reader_pe) { peers_[static_cast<std::size_t>(reader_pe)].reads = false; }

  // False if blocks for that PE must travel in messages.
  bool posts_for(int reader_pe) const {
    const auto reader = static_cast<std::size_t>(reader_pe);
    return posts_ && reader < peers_.size() && peers_[reader].reads;
  }
  // Copies the block for one reader. Nothing if there is no room. REQUIRES: posts_for().
  std::optional<BoardReference> post(std::span<const std::byte> block);
  // One more reader of a block. REQUIRES: posts_for() it; nothing was posted since.
  void add_reader(const BoardReference& reference);
  // A reader has not been told.
  void take_back(const BoardReference& reference) { block_at(own_board(reference), reference).release(); }
  // That PE is lost. If it may have blocks to read, this PE takes another board, because those would be in the way for ever. The blocks for
  // others stay where they are.
  void lose(int reader_pe);

  struct Block {
    std::span<const std::byte> bytes;
    std::atomic<std::uint32_t>* readers = nullptr;
    // Null: the bytes are not on a board, and need no release.
    void release() const {
      if (readers != nullptr) readers->fetch_sub(1, std::memory_order_release);
    }
  };
  // Whether there can be such a block.
  static bool is_inside(const BoardReference& reference);
  // What that PE has posted; nothing if this process cannot open its board. REQUIRES: is_inside().
  std::optional<Block> read(int owner_pe, const BoardReference& reference);

  // The reader cannot open this PE's board: its blocks travel in messages from now on. Returns the block that it could not read. Ends the
  // job if there is no such block.
  Block refused_by(int reader_pe, const BoardReference& reference);

  // From now on this PE opens no board. For tests.
  void open_none() { opens_ = false; }
  // Posted blocks that are not known to be read.
  std::size_t num_posted();

 private:
  struct Posted {
    std::size_t offset_bytes;
    std::size_t size_bytes;  // with what counts its readers
  };
  static constexpr std::size_t kFirstBytes = 4096;  // the mapping's random number
  static constexpr std::size_t kAlignment = 64;

  static Block block_at(std::byte* board, const BoardReference& reference);
  bool make_own();
  // Where the blocks of the board in the reference are, which is this PE's; null if it has no such board.
  std::byte* own_board(const BoardReference& reference) const;
  void drop_read();
  // kBoardBytes if there is no room.
  std::size_t find_room(std::size_t size_bytes);

  struct Peer {
    base::SharedMapping board;  // once it has been read
    bool reads = true;          // this PE's board
  };

  base::SharedMapping own_;
  std::vector<base::SharedMapping> earlier_;  // that others may still read, see lose()
  std::deque<Posted> posted_;                 // in the order of the circle
  std::vector<Peer> peers_;                   // by PE
  bool posts_ = true;                         // false if there is no memory for a board
  bool opens_ = true;
};

}  // namespace weft::collective
