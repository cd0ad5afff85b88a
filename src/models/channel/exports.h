// The allocations of this PE that other PEs of the host may map, each with a number that is never given to
// another one. An allocation is exported when it is used for the second time: a buffer that is made for one
// message is not worth the milliseconds that mapping it may take. Nothing remembered about an address is used
// unless its generation is still the same.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "memory/memory.h"

namespace weft::channel {

class Exports {
 public:
  struct Export {
    std::uint64_t number = 0;  // 0: was used once
    memory::Allocation allocation;
    std::vector<std::byte> bytes;  // empty though numbered: cannot be exported, which is not tried again
    std::vector<int> told;         // PEs that have been given the bytes
    std::uint64_t last_use = 0;

    void tell(int pe);
  };
  // Called when the allocation has gone, or is about to: that PE need not keep it mapped any longer.
  using Forget = std::function<void(int pe, std::uint64_t number)>;

  // Allocations that other libraries have freed are noticed when their address is used again, so the table is
  // bounded: what was not used for longest goes, unless somebody holds it, and is exported anew should it be
  // used again.
  static constexpr std::size_t kMaxExports = 1024;

  Exports(memory::Memory& memory, Forget forget, std::size_t max_exports = kMaxExports);
  ~Exports();
  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;

  // The allocation that all of `buffer` lies in; null when it is new, or others cannot map it. Held while its
  // number is posted somewhere, so that whoever reads it there is told of its end afterwards.
  std::shared_ptr<Export> find(const memory::Buffer& buffer);
  // Why the first allocation that could not be exported could not; ok if there was none.
  const base::Status& first_failure() const { return first_failure_; }

 private:
  using Table = std::map<std::uintptr_t, std::shared_ptr<Export>>;
  void make(Export& one, const memory::Buffer& buffer);
  void make_room();
  void release(Table::iterator one);

  memory::Memory& memory_;
  Forget forget_;
  std::size_t max_exports_;
  Table exports_;  // by base
  std::uint64_t uses_ = 0;
  std::uint64_t next_number_ = 1;
  base::Status first_failure_;
};

}  // namespace weft::channel
