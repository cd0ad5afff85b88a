// The allocations of this PE that other PEs of the host may map. Each has a number that is never given to
// another allocation.
//
// An allocation is given to other PEs when it is used for the second time: mapping it may take a millisecond,
// which does not pay for a buffer that is made for one message. Whether it can be exported is known from the
// first use on. An entry is used only while the generation of its
// allocation is the one that it was made with.
//
// An allocation that is gone stays in the table of old mappings until all PEs that were told of it have unmapped it.
// Meanwhile no other library may map what has been allocated at its addresses since: CUDA refuses a mapping that
// overlaps another one in part, and UCX ends the process then.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "machine/peer_memory/mapping/peer_buffer.h"
#include "memory/memory.h"

namespace weft::machine {

class Exports {
 public:
  struct Export {
    std::uint64_t number = 0;
    memory::Allocation allocation;
    std::vector<std::byte> bytes;  // empty: cannot be exported, and is not tried again
    std::vector<int> told;         // PEs that may have mapped it
    std::uint64_t last_use = 0;

    // Records that `pe` is given the bytes.
    void tell(int pe);
  };
  // Called when an allocation is gone, or about to go: `pe` should unmap it, and then forgotten() is called.
  using Forget = std::function<void(int pe, std::uint64_t number)>;

  // The table is bounded, because an allocation that another library frees is noticed only when its address
  // is used again. The least recently used entry that is not held is removed first; it is exported again
  // under a new number when it is used again.
  static constexpr std::size_t kMaxExports = 1024;

  // `memory` must outlive it. Takes the release listener of `memory`.
  Exports(memory::Memory& memory, Forget forget, std::size_t max_exports = kMaxExports);
  ~Exports();
  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;

  // The export of the allocation that contains all of `buffer`. Null at the first use, and when other PEs
  // cannot map it. Hold the pointer while a peer may read the number: `forget` is called after that.
  std::shared_ptr<Export> find(const memory::ConstBuffer& buffer);
  // Whether find() can never return an export for `buffer`: its allocation cannot be exported, or it lies in
  // several allocations. REQUIRES: find() was called for it and returned null.
  bool cannot_export(const memory::ConstBuffer& buffer);
  // An export that is given to other PEs at once, of memory that Weft has allocated for that. Null if it
  // cannot be exported.
  std::shared_ptr<Export> make(const memory::ConstBuffer& buffer);
  // `pe` has unmapped what it was asked to forget. A claim of a peer: what it was not asked is ignored.
  void forgotten(int pe, std::uint64_t number);
  // Whether another PE may still map an earlier allocation at addresses of `buffer`'s allocation.
  bool overlaps_old_mapping(const memory::ConstBuffer& buffer);
  // The name of `buffer`, which lies in the exported allocation.
  static PeerBuffer name(const Export& one, const memory::ConstBuffer& buffer);
  // The first reason for which an allocation could not be exported; ok if there is none.
  const base::Status& first_failure() const { return first_failure_; }

 private:
  using Table = std::map<std::uintptr_t, std::shared_ptr<Export>>;
  // A released export of an allocation that the PEs in `pes` may still map.
  struct OldMapping {
    memory::Allocation allocation;
    std::vector<int> pes;
  };
  // Null if the buffer is not inside of one allocation that can be told from others.
  std::shared_ptr<Export> entry(const memory::ConstBuffer& buffer, bool& is_new);
  // Releases the exports of earlier allocations at addresses of `allocation`: they are gone.
  void release_earlier(const memory::Allocation& allocation);
  void export_now(Export& one, const memory::ConstBuffer& buffer);
  void make_room();
  void release(Table::iterator one);

  memory::Memory& memory_;
  Forget forget_;
  std::size_t max_exports_;
  Table exports_;                                     // by base; they do not overlap
  std::map<std::uint64_t, OldMapping> old_mappings_;  // by number
  std::uint64_t uses_ = 0;
  std::uint64_t next_number_ = 1;
  base::Status first_failure_;
};

}  // namespace weft::machine
