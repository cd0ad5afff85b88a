// The allocations of other PEs of the host that this PE has mapped, by the numbers that their owners gave
// them.
//
// A mapping costs address space and, for cuda, a driver call of up to a millisecond, so it is kept. It is
// released when
//   - its owner says that the allocation is gone,
//   - another allocation of that owner has some of its addresses, or
//   - kMaxPerPe other allocations of that owner were used since.
// A failure to map is remembered. Another library of this process may have mapped an earlier allocation at those
// addresses and let go of it later, so it is tried again after kRetryUses more uses, and three more times after ever
// more. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "machine/peer_memory/mapping/peer_buffer.h"
#include "memory/memory.h"

namespace weft::machine {

class Imports {
 public:
  static constexpr std::size_t kMaxPerPe = 256;
  static constexpr std::uint64_t kRetryUses = 16;
  static constexpr int kMaxTries = 5;

  struct Import {
    memory::Buffer mapped;  // the whole allocation; null address: it cannot be mapped
    std::uint64_t owner_base = 0;
    std::uint64_t last_use = 0;
    int tries = 0;
    std::uint64_t uses_until_retry = 0;
    int copies_under_way = 0;
    bool is_forgotten = false;
  };

  // Called when nothing is mapped any more of an allocation that forget() named.
  using Forgotten = std::function<void(int pe, std::uint64_t export_number)>;

  // `memory` must outlive it.
  Imports(memory::Memory& memory, Forgotten forgotten) : memory_(memory), forgotten_(std::move(forgotten)) {}
  Imports(const Imports&) = delete;
  Imports& operator=(const Imports&) = delete;

  // The allocation of `pe` that `peer_buffer` names, mapped where copies of the device `here` reach it; null
  // if they do not reach it. The import stays until it is forgotten and no copy uses it: count up
  // copies_under_way while one does.
  Import* find(int pe, const PeerBuffer& peer_buffer, std::span<const std::byte> exported,
               memory::Place here);
  // The part of the mapped allocation that `peer_buffer` names; kCorrupt when it leaves the allocation.
  static base::Result<memory::Buffer> locate(const Import& import, const PeerBuffer& peer_buffer);
  // A copy has ended.
  void copy_done(Import& import);
  // The owner says that the allocation is gone. `forgotten` is called once: inside this call, or when the last copy
  // that uses it has ended.
  void forget(int pe, std::uint64_t export_number);
  // Releases every mapping, except those that copies still use because their device hangs.
  void close();
  std::size_t size() const { return imports_.size(); }
  // The first reason for which an allocation could not be mapped; ok if there is none.
  const base::Status& first_failure() const { return first_failure_; }

 private:
  using Key = std::tuple<int, std::uint64_t, int>;  // owner, number, own device
  using Table = std::map<Key, Import>;
  base::Result<memory::Buffer> map(const PeerBuffer& peer_buffer, std::span<const std::byte> exported,
                                   memory::Place here);
  bool has(int pe, std::uint64_t export_number) const;
  void make_room(int pe, const PeerBuffer& peer_buffer);
  Table::iterator release(Table::iterator one);

  memory::Memory& memory_;
  Forgotten forgotten_;
  Table imports_;
  std::uint64_t uses_ = 0;
  base::Status first_failure_;
};

}  // namespace weft::machine
