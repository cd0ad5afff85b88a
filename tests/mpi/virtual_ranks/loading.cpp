// What the loader of copies must fill in: functions that are chosen at the start, weak references, variables of the C++ library
// per thread, versions of symbols, constructors. And what others must find in a copy: its code, for exceptions and profilers.
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

int failures = 0;
int rank_number = -1;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "rank %d: %s\n", rank_number, what);
  ++failures;
}

int one() { return 1; }
int two() { return 2; }

// A pointer with a value that the loader computes, in memory that is write-protected afterwards.
int (*const functions[])() = {&one, &two};

int own_variable = 17;

}  // namespace

extern "C" {

// Chosen by a function of the program while it is loaded.
int (*choose())() { return &two; }
int chosen() __attribute__((ifunc("choose")));

// No library has it.
extern int missing_function() __attribute__((weak));

// The program's own function comes before that of the C library.
int getopt(int, char* const*, const char*) { return 77; }

}  // extern "C"

namespace {

// std::call_once() uses thread-local variables of the C++ library.
void check_thread_variables() {
  std::once_flag once;
  int calls = 0;
  for (int i = 0; i < 3; ++i) std::call_once(once, [&] { ++calls; });
  check(calls == 1, "std::call_once does not call once");
  std::thread([&] { std::call_once(once, [&] { ++calls; }); }).join();
  check(calls == 1, "std::call_once calls again in another thread");
}

struct Seen {
  std::uintptr_t address = 0;
  int count = 0;
};

// Profilers and unwinders look for the code so.
void check_visibility() {
  Seen seen{reinterpret_cast<std::uintptr_t>(&one), 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Seen*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
          if (info->dlpi_phdr[i].p_type == PT_LOAD && wanted.address >= begin &&
              wanted.address - begin < info->dlpi_phdr[i].p_memsz)
            ++wanted.count;
        }
        return 0;
      },
      &seen);
  check(seen.count == 1, "dl_iterate_phdr() does not name the copy");
}

[[noreturn, gnu::noinline]] void throw_in(int depth) {
  if (depth == 0) throw std::out_of_range("thrown");
  const std::string destroyed(100, 'x');
  throw_in(depth - 1);
}

int compare_or_throw(const void*, const void*) { throw std::runtime_error("in a callback"); }

void check_exceptions() {
  bool is_caught = false;
  try {
    throw_in(10);
  } catch (const std::logic_error& error) {
    is_caught = std::strcmp(error.what(), "thrown") == 0;
  }
  check(is_caught, "an exception was not caught");
  is_caught = false;
  int numbers[] = {2, 1};
  try {
    std::qsort(numbers, 2, sizeof numbers[0], &compare_or_throw);  // through frames of the C library
  } catch (const std::runtime_error&) {
    is_caught = true;
  }
  check(is_caught, "an exception through a function of the C library was not caught");
  try {
    (void)std::string("text").at(100);  // thrown by the C++ library
    check(false, "the C++ library threw nothing");
  } catch (const std::out_of_range&) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_number);
  check(chosen() == 2, "a chosen function is another one");
  check(functions[0]() == 1 && functions[1]() == 2, "a table of functions is wrong");
  check(missing_function == nullptr, "a missing weak function has an address");
  check(getopt(0, nullptr, nullptr) == 77, "the program's function is another one");
  own_variable += rank_number;
  check_thread_variables();
  check_visibility();
  MPI_Barrier(MPI_COMM_WORLD);
  check_exceptions();
  check(own_variable == 17 + rank_number, "a variable is shared");
  if (argc > 1) std::printf("rank %d at %p\n", rank_number, static_cast<void*>(&own_variable));
  std::printf("rank %d: %d failures\n", rank_number, failures);
  MPI_Finalize();
  return failures;
}
