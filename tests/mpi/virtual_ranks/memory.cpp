// Memory of a rank lies in the rank's slot, whoever allocates it on behalf of the program. Any memory can be freed.
#include <malloc.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

int failures = 0;
int rank_number = -1;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "rank %d: %s\n", rank_number, what);
  ++failures;
}

// With up to 64 ranks a slot has 2^38 bytes. A variable of the program is in it.
int variable = 0;
bool is_own(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) >> 38 == reinterpret_cast<std::uintptr_t>(&variable) >> 38;
}

template <class T>
void check_block(T* block, std::size_t size_bytes, const char* what) {
  check(block != nullptr && is_own(block), what);
  if (block != nullptr) std::memset(static_cast<void*>(block), rank_number, size_bytes);
}

void check_c_functions() {
  void* blocks[] = {std::malloc(1000),
                    std::calloc(10, 100),
                    std::realloc(nullptr, 1000),
                    reallocarray(nullptr, 10, 100),
                    memalign(64, 1000),
                    aligned_alloc(64, 1024),
                    valloc(1000)};
  const char* names[] = {"malloc",   "calloc",        "realloc", "reallocarray",
                         "memalign", "aligned_alloc", "valloc"};
  for (int i = 0; i < 7; ++i) check_block(blocks[i], 1000, names[i]);
  for (int i = 4; i < 6; ++i)
    check(reinterpret_cast<std::uintptr_t>(blocks[i]) % 64 == 0, "a block is not aligned");
  check(malloc_usable_size(blocks[0]) >= 1000, "malloc_usable_size is too small");
  blocks[0] = std::realloc(blocks[0], 100000);
  check_block(blocks[0], 100000, "realloc to more");
  for (void* const block : blocks) std::free(block);
  void* aligned = nullptr;
  check(posix_memalign(&aligned, 4096, 100) == 0, "posix_memalign fails");
  check_block(aligned, 100, "posix_memalign");
  std::free(aligned);
  check(posix_memalign(&aligned, 3, 100) == EINVAL, "posix_memalign takes a wrong alignment");
  std::free(nullptr);
  check(std::malloc(SIZE_MAX / 2) == nullptr && errno == ENOMEM, "malloc has too much memory");
}

void check_texts() {
  char* const copied = strdup("copied");
  char* const cut = strndup("copied", 3);
  wchar_t* const wide = wcsdup(L"wide");
  char* printed = nullptr;
  check(asprintf(&printed, "%s %d%c.", "rank", rank_number, 0) > 0, "asprintf fails");
  char* const folder = getcwd(nullptr, 0);
  char* const path = realpath(".", nullptr);
  check(std::strcmp(copied, "copied") == 0 && std::strcmp(cut, "cop") == 0 && std::wcscmp(wide, L"wide") == 0,
        "a text is wrong");
  check(std::strncmp(printed, "rank ", 5) == 0, "a printed text is wrong");
  check(std::strcmp(folder, path) == 0, "a path is wrong");
  check(is_own(copied) && is_own(cut) && is_own(wide) && is_own(printed) && is_own(folder) && is_own(path),
        "a text is outside");
  for (void* const text : {static_cast<void*>(copied), static_cast<void*>(cut), static_cast<void*>(wide),
                           static_cast<void*>(printed), static_cast<void*>(folder), static_cast<void*>(path)})
    std::free(text);
}

void check_lines() {
  std::FILE* const file = std::tmpfile();
  const std::string long_line(100000, 'x');
  std::fprintf(file, "short\n%s\n", long_line.c_str());
  std::rewind(file);
  char* line = nullptr;
  std::size_t room = 0;
  check(getline(&line, &room, file) == 6 && is_own(line), "getline");
  check(getline(&line, &room, file) == 100001 && is_own(line), "getline of a long line");
  check(std::string(line, 100000) == long_line, "a long line is wrong");
  std::free(line);
  std::fclose(file);
}

struct alignas(128) Aligned {
  char bytes[256];
};

void check_objects() {
  const auto number = std::make_unique<int>(1);
  const auto aligned = std::make_unique<Aligned>();
  std::vector<int> numbers(1000, rank_number);
  std::string text = "longer than what fits into the object itself";
  text += text;  // in the library
  std::ostringstream stream;
  stream << text << text << rank_number;
  const std::string streamed = stream.str();
  check(is_own(number.get()) && is_own(aligned.get()) && is_own(numbers.data()), "operator new");
  check(is_own(text.data()) && is_own(streamed.data()), "a std::string");
  check(reinterpret_cast<std::uintptr_t>(aligned.get()) % 128 == 0, "an object is not aligned");
  check(is_own(&failures) && is_own(&numbers), "a variable");
  std::exception_ptr kept;
  try {
    throw std::runtime_error(text);
  } catch (const std::exception& error) {
    check(is_own(&error) && is_own(error.what()), "an exception");
    kept = std::current_exception();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  try {
    std::rethrow_exception(kept);
  } catch (const std::runtime_error& error) {
    check(error.what() == text, "a kept exception has another text");
  }
}

void check_mpi_memory() {
  void* block = nullptr;
  MPI_Alloc_mem(5000, MPI_INFO_NULL, static_cast<void*>(&block));
  check_block(block, 5000, "MPI_Alloc_mem");
  MPI_Free_mem(block);
}

// Threads have no rank: their memory is the process's. Each may free that of the other.
void check_threads() {
  char* of_rank = strdup("of the rank");
  char* of_thread = nullptr;
  std::thread([&] {
    std::free(of_rank);
    of_thread = strdup("of the thread");
    of_rank = nullptr;
  }).join();
  of_thread = static_cast<char*>(std::realloc(of_thread, 1000));
  check(std::strcmp(of_thread, "of the thread") == 0, "a text of a thread is wrong");
  std::free(of_thread);
}

std::string kept_by_operator;

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  kept_by_operator = std::string(100, 'k');
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
}

int forget(MPI_Comm, int, void* value, void*) {
  std::free(value);
  return MPI_SUCCESS;
}

// Functions of the program that the library calls, some of them not on the stack of the rank.
void check_callbacks() {
  MPI_Op sum;
  MPI_Op_create(&add, 1, &sum);
  int total = 0;
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int root = 0; root < size; ++root)
    MPI_Reduce(&rank_number, &total, 1, MPI_INT, sum, root, MPI_COMM_WORLD);
  MPI_Scan(&rank_number, &total, 1, MPI_INT, sum, MPI_COMM_WORLD);
  check(total == rank_number * (rank_number + 1) / 2, "a sum is wrong");
  check(kept_by_operator.empty() || is_own(kept_by_operator.data()), "memory of an operator");
  MPI_Op_free(&sum);
  int key = 0;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &forget, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, strdup("an attribute"));
  MPI_Comm_delete_attr(MPI_COMM_SELF, key);
  MPI_Comm_free_keyval(&key);
}

// Many blocks of all sizes while ranks take turns.
void check_many() {
  std::vector<std::vector<unsigned char>> blocks;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 200; ++i)
      blocks.emplace_back(static_cast<std::size_t>((i * 7919 + round * 31) % 9000 + 1),
                          static_cast<unsigned char>(rank_number + i));
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::size_t i = round % 2; i < blocks.size(); i += 2) blocks[i].clear(), blocks[i].shrink_to_fit();
  }
  bool right = true;
  for (const auto& block : blocks) {
    for (const unsigned char byte : block) right = right && byte == block.front();
  }
  check(right, "a block has been overwritten");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_number);
  check(is_own(&argc), "the stack");
  check_c_functions();
  check_texts();
  check_lines();
  check_objects();
  check_mpi_memory();
  check_threads();
  check_callbacks();
  check_many();
  std::printf("rank %d: %d failures\n", rank_number, failures);
  MPI_Finalize();
  return failures;
}
