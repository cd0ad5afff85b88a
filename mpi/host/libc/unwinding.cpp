// dl_iterate_phdr() and _dl_find_object(), which name the loaded objects. They name the copies of the program too.
//
// The unwinder of g++ 12 and later calls _dl_find_object() if the C library has it, others call dl_iterate_phdr(). Nothing is
// registered with an unwinder: it would allocate memory on behalf of the rank that happens to throw.
// Threads: any; the copies change only while no rank runs.
#include <dlfcn.h>
#include <link.h>

#include <cstddef>

#include "loading/copies_for_unwinders.h"

namespace weft::mpi_host {

namespace {

struct ShownCopies {
  const Program* program = nullptr;
  const Slots* slots = nullptr;
  const std::vector<RankState*>* states = nullptr;
} shown;

// The begin of the copy that has the address in its code or its variables; null if none has.
char* copy_at(const void* address) {
  if (shown.slots == nullptr) return nullptr;
  const int rank = shown.slots->rank_at(address);
  if (rank < 0) return nullptr;
  const RankState* const state = (*shown.states)[static_cast<std::size_t>(rank)];
  return state != nullptr && state->owns(address) ? shown.slots->begin(rank) : nullptr;
}

}  // namespace

void show_copies_to_unwinders(const Program& program, const Slots& slots,
                              const std::vector<RankState*>& states) {
  shown = {&program, &slots, &states};
}

}  // namespace weft::mpi_host

using namespace weft::mpi_host;  // NOLINT(google-build-using-namespace): the replacements are C functions

extern "C" {

int dl_iterate_phdr(int (*function)(dl_phdr_info*, std::size_t, void*), void* data) {
  using Form = int(int (*)(dl_phdr_info*, std::size_t, void*), void*);
  static auto* const form = replaced<Form>("dl_iterate_phdr");
  if (const int result = form(function, data); result != 0 || shown.slots == nullptr) return result;
  const std::vector<Elf64_Phdr>& segments = shown.program->file().segments();
  dl_phdr_info info{};
  info.dlpi_name = shown.program->path().c_str();
  info.dlpi_phdr = segments.data();
  info.dlpi_phnum = static_cast<Elf64_Half>(segments.size());
  for (std::size_t rank = 0; rank < shown.states->size(); ++rank) {
    if ((*shown.states)[rank] == nullptr) continue;
    info.dlpi_addr = reinterpret_cast<Elf64_Addr>(shown.slots->begin(static_cast<int>(rank)));
    if (const int result = function(&info, sizeof info, data); result != 0) return result;
  }
  return 0;
}

#ifdef DLFO_EH_SEGMENT_TYPE
// NOLINTNEXTLINE(bugprone-reserved-identifier): the C library's name of it
int _dl_find_object(void* address, dl_find_object* result) noexcept {
  using Form = int(void*, dl_find_object*);
  static auto* const form = replaced<Form>("_dl_find_object");
  char* const base = copy_at(address);
  if (base == nullptr) return form(address, result);
  const Elf64_Phdr* const frames = shown.program->file().segment(DLFO_EH_SEGMENT_TYPE);
  if (frames == nullptr) return -1;
  *result = {};
  result->dlfo_map_start = base;
  result->dlfo_map_end = base + shown.program->image_bytes();
  result->dlfo_eh_frame = base + frames->p_vaddr;
  return 0;
}
#endif

}  // extern "C"
