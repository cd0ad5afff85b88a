#include "memory/kinds/host_ranges.h"

#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

// Where glibc keeps the current break; UCX's memory hooks keep it there too. With a C library that lacks it
// there is no heap range.
extern "C" [[gnu::weak]] void* weft_current_break asm("__curbrk");

namespace weft::memory {

namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uintptr_t parse_address(std::string_view text, int base) {
  std::uintptr_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return result.ec == std::errc() ? number : 0;
}

}  // namespace

std::uintptr_t start_of_heap(std::string_view stat) {
  // Field 47, start_brk. Field 2 is the program's name in parentheses, which may contain parentheses and
  // spaces.
  constexpr int kFieldsAfterName = 45;
  std::size_t at = stat.rfind(')');
  for (int i = 0; i < kFieldsAfterName && at != std::string_view::npos; ++i) at = stat.find(' ', at + 1);
  return at == std::string_view::npos ? 0 : parse_address(stat.substr(at + 1), 10);
}

HostRanges::Range main_stack(std::string_view maps) {
  const std::size_t name = maps.find(" [stack]\n");
  if (name == std::string_view::npos) return {};
  const std::size_t line_before = maps.substr(0, name).rfind('\n');
  const std::size_t start = line_before == std::string_view::npos ? 0 : line_before + 1;
  const std::string_view line = maps.substr(start, name - start);
  const std::size_t dash = line.find('-');
  const bool is_file = line.find('/') != std::string_view::npos;  // whose name ends in the same way
  if (is_file || dash == std::string_view::npos) return {};
  const std::uintptr_t begin = parse_address(line, 16);
  const std::uintptr_t end = parse_address(line.substr(dash + 1), 16);
  return begin == 0 || end <= begin ? HostRanges::Range{} : HostRanges::Range{begin, end - begin};
}

void HostRanges::add_heap() {
  const std::uintptr_t begin = start_of_heap(text_of("/proc/self/stat"));
  if (begin == 0 || &weft_current_break == nullptr) return;
  // Null until the C library first uses the heap. Another difference means that something moves the break by
  // system calls of its own, or is doing so now.
  const void* const known = __atomic_load_n(&weft_current_break, __ATOMIC_RELAXED);
  const auto actual = static_cast<std::uintptr_t>(::syscall(SYS_brk, 0));
  if (known != nullptr && reinterpret_cast<std::uintptr_t>(known) != actual) return;
  heap_begin_ = begin;
  break_ = &weft_current_break;
}

void HostRanges::add(Range range) {
  for (Range& room : fixed_) {
    if (room.size_bytes == 0) {
      room = range;
      return;
    }
  }
}

HostRanges HostRanges::of_process() {
  HostRanges ranges;
  ranges.add(main_stack(text_of("/proc/self/maps")));
  const auto add_program = [](dl_phdr_info* first, std::size_t, void* ranges_in) {
    // In a namespace of dlmopen() the first object is another one, which can be unloaded. The C library is a
    // second one there, which does not know the break.
    if (reinterpret_cast<std::uintptr_t>(first->dlpi_phdr) != ::getauxval(AT_PHDR)) return 1;
    auto& self = *static_cast<HostRanges*>(ranges_in);
    self.add_heap();
    for (int i = 0; i < first->dlpi_phnum; ++i) {
      const ElfW(Phdr) & segment = first->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
      self.add({first->dlpi_addr + segment.p_vaddr, segment.p_memsz});
    }
    return 1;  // the first object only
  };
  ::dl_iterate_phdr(add_program, &ranges);
  return ranges;
}

}  // namespace weft::memory
