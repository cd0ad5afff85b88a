// The allocations of other PEs of the host that this PE has mapped, by the numbers that their owners gave
// them.
//
// A mapping costs address space and, for cuda, a driver call of up to a millisecond, so it is kept: until its
// owner says that the allocation goes, another allocation of that owner takes its place, or kMaxPerPe others
// were used since. An allocation that could not be mapped is remembered as such. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>

#include "memory/memory.h"
#include "models/channel/mailbox.h"

namespace weft::channel {

class Imports {
 public:
  static constexpr std::size_t kMaxPerPe = 256;

  struct Import {
    memory::Buffer mapped;  // null address: it cannot be mapped
    std::uint64_t owner_base = 0;
    std::uint64_t last_use = 0;
    int copies_under_way = 0;
    bool is_forgotten = false;
  };

  explicit Imports(memory::Memory& memory) : memory_(memory) {}
  Imports(const Imports&) = delete;
  Imports& operator=(const Imports&) = delete;

  // The allocation of `pe` that `posting` names, where copies of the device `from` reach it; null when they
  // do not. Stays until it is forgotten and has no copy under way.
  Import* find(int pe, const Posting& posting, std::span<const std::byte> exported, memory::Place from);
  void copy_done(Import& import);
  void forget(int pe, std::uint64_t export_number);
  // REQUIRES: no copies are under way.
  void close();
  std::size_t size() const { return imports_.size(); }
  // Why the first allocation that could not be mapped could not; ok if there was none.
  const base::Status& first_failure() const { return first_failure_; }

 private:
  using Key = std::tuple<int, std::uint64_t, int>;  // owner, number, own device
  using Table = std::map<Key, Import>;
  base::Result<memory::Buffer> map(const Posting& posting, std::span<const std::byte> exported,
                                   memory::Place from);
  void make_room(int pe, const Posting& posting);
  Table::iterator release(Table::iterator one);

  memory::Memory& memory_;
  Table imports_;
  std::uint64_t uses_ = 0;
  base::Status first_failure_;
};

}  // namespace weft::channel
