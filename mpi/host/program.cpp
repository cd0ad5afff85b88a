#include "program.h"

#include <utility>

#include "base/format.h"
#include "refusal.h"

namespace weft::mpi_host {

namespace {

using base::format;

// In the range for systems, and without a meaning: the loader skips such an entry.
constexpr std::int64_t kNoMeaning = DT_LOOS + 0x0eff;

void check(const ElfFile& file) {
  const std::string& path = file.path();
  if (file.interpreter().empty() && file.header().e_type != ET_DYN) {
    throw Refusal(
        format("{}: is linked statically, so its ranks would share all variables; link it without -static to "
               "run several ranks in a process",
               path));
  }
  if (file.header().e_type != ET_DYN || !file.dynamic_value(DT_FLAGS_1) ||
      (*file.dynamic_value(DT_FLAGS_1) & DF_1_PIE) == 0) {
    throw Refusal(format(
        "{}: has fixed addresses, so there can be one copy of it in a process; compile and link it with "
        "-fPIE -pie to run several ranks in a process",
        path));
  }
  if (file.interpreter().empty())
    throw Refusal(
        format("{}: is linked with -static-pie; link it without to run several ranks in a process", path));
  if (file.segment(PT_TLS) != nullptr) {
    throw Refusal(format(
        "{}: has thread-local variables (thread_local, __thread, or OpenMP's threadprivate), which the ranks "
        "of a process would share; make them ordinary variables, or start one PE per rank (-n)",
        path));
  }
}

}  // namespace

Program::Program(ElfFile file) : file_(std::move(file)) {
  check(file_);
  first_constructor = take_function(DT_INIT);
  last_destructor = take_function(DT_FINI);
  early_constructors = take_array(DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ);
  constructors = take_array(DT_INIT_ARRAY, DT_INIT_ARRAYSZ);
  destructors = take_array(DT_FINI_ARRAY, DT_FINI_ARRAYSZ);
  for (Elf64_Dyn& entry : file_.dynamic()) {
    if (entry.d_tag == DT_FLAGS_1) entry.d_un.d_val &= ~static_cast<Elf64_Xword>(DF_1_PIE | DF_1_NOOPEN);
  }
  image_ = file_.with_dynamic_entries();
}

std::uint64_t Program::take_function(std::int64_t tag) {
  for (Elf64_Dyn& entry : file_.dynamic()) {
    if (entry.d_tag != tag) continue;
    entry.d_tag = kNoMeaning;
    return entry.d_un.d_ptr;
  }
  return 0;
}

FunctionArray Program::take_array(std::int64_t tag, std::int64_t size_tag) {
  FunctionArray array;
  for (Elf64_Dyn& entry : file_.dynamic()) {
    if (entry.d_tag == tag) array.offset = entry.d_un.d_ptr;
    if (entry.d_tag != size_tag) continue;
    array.count = entry.d_un.d_val / sizeof(void*);
    entry.d_un.d_val = 0;
  }
  return array;
}

}  // namespace weft::mpi_host
