// Windows in device memory, and origins there: argument 1 names the kind, emulated or cuda.
#include "../device.hpp"

namespace {

using device::Ints;

int rank = 0;
int size = 1;

// Large transfers go another way than small ones.
constexpr int kCounts[] = {3, 40'000};

std::vector<int> pattern(int count, int seed) {
  std::vector<int> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = 1000 * seed + i;
  return values;
}

void fence(MPI_Win win) {
  CHECK(MPI_Win_fence(0, win) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
}

// The right neighbour gets values of each kind of memory, and gives them back.
void put_and_get(MPI_Win win, int count, const std::string& origin_kind, int left, int right) {
  const Ints out(pattern(count, rank), origin_kind);
  const Ints back(std::vector<int>(static_cast<std::size_t>(count), -1), origin_kind);
  fence(win);
  CHECK(MPI_Put(out.data(), count, MPI_INT, right, 0, count, MPI_INT, win) == MPI_SUCCESS);
  fence(win);
  CHECK(MPI_Get(back.data(), count, MPI_INT, right, 0, count, MPI_INT, win) == MPI_SUCCESS);
  fence(win);
  CHECK(back.read() == pattern(count, rank));
  const Ints own(std::vector<int>(static_cast<std::size_t>(count), -1), origin_kind);
  CHECK(MPI_Get(own.data(), count, MPI_INT, rank, 0, count, MPI_INT, win) == MPI_SUCCESS);
  fence(win);
  CHECK(own.read() == pattern(count, left));
}

// Every second element, in both.
void vectors(MPI_Win win, int count, int right) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector((count + 1) / 2, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  const Ints zeros(std::vector<int>(static_cast<std::size_t>(count), 0));
  const Ints out(pattern(count, 7));
  const Ints back(std::vector<int>(static_cast<std::size_t>(count), -1));
  fence(win);
  CHECK(MPI_Put(zeros.data(), count, MPI_INT, right, 0, count, MPI_INT, win) == MPI_SUCCESS);
  fence(win);
  CHECK(MPI_Put(out.data(), 1, type, right, 0, 1, type, win) == MPI_SUCCESS);
  fence(win);
  CHECK(MPI_Get(back.data(), count, MPI_INT, right, 0, count, MPI_INT, win) == MPI_SUCCESS);
  fence(win);
  std::vector<int> expected = pattern(count, 7);
  for (std::size_t i = 1; i < expected.size(); i += 2) expected[i] = 0;
  CHECK(back.read() == expected);
  MPI_Type_free(&type);
}

// All ranks add to rank 0, while locks are shared.
void accumulate(MPI_Win win, int count) {
  const Ints zeros(std::vector<int>(static_cast<std::size_t>(count), 0));
  const Ints ones(std::vector<int>(static_cast<std::size_t>(count), 1));
  const Ints got(std::vector<int>(static_cast<std::size_t>(count), -1));
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(zeros.data(), count, MPI_INT, 0, 0, count, MPI_INT, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < 5; ++i) {
    CHECK(MPI_Accumulate(ones.data(), count, MPI_INT, 0, 0, count, MPI_INT, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Get_accumulate(ones.data(), count, MPI_INT, got.data(), count, MPI_INT, 0, 0, count, MPI_INT,
                             MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Win_flush(0, win) == MPI_SUCCESS);
    // Element by element, others may have come between.
    for (const int value : got.read()) CHECK(value >= 2 * i + 1 && value < 10 * size);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(got.data(), count, MPI_INT, 0, 0, count, MPI_INT, win);
  MPI_Win_unlock(0, win);
  CHECK(got.read() == std::vector<int>(static_cast<std::size_t>(count), 10 * size));
  MPI_Barrier(MPI_COMM_WORLD);
  const Ints old({-1});
  const Ints compare({10 * size});
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  CHECK(MPI_Compare_and_swap(ones.data(), compare.data(), old.data(), MPI_INT, 0, 1, win) == MPI_SUCCESS);
  MPI_Win_unlock(0, win);
  CHECK(old.read()[0] == 10 * size || old.read()[0] == 1);
  MPI_Barrier(MPI_COMM_WORLD);
}

void all_accesses(MPI_Win win, int count) {
  const int right = (rank + 1) % size;
  const int left = (rank + size - 1) % size;
  for (const std::string& origin_kind : {std::string("host"), device::kind()})
    put_and_get(win, count, origin_kind, left, right);
  vectors(win, count, right);
  accumulate(win, count);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  device::kind() = argv[1];
  for (const int count : kCounts) {
    const auto bytes = static_cast<MPI_Aint>(static_cast<std::size_t>(count) * sizeof(int));
    MPI_Win win = MPI_WIN_NULL;
    {
      const Ints memory(std::vector<int>(static_cast<std::size_t>(count), 0));
      MPI_Win_create(memory.data(), bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
      all_accesses(win, count);
      MPI_Win_free(&win);
    }
    // Memory that the window allocates: on the device, and on the host with origins on the device.
    for (const std::string& kind : {std::string("host"), device::kind()}) {
      MPI_Info info = MPI_INFO_NULL;
      int* base = nullptr;
      MPI_Info_create(&info);
      MPI_Info_set(info, "weft_memory_kind", kind.c_str());
      CHECK(MPI_Win_allocate(bytes, sizeof(int), info, MPI_COMM_WORLD, &base, &win) == MPI_SUCCESS);
      CHECK(base != nullptr);
      MPI_Info_free(&info);
      all_accesses(win, count);
      MPI_Win_free(&win);
    }
  }
  if (rank == 0) std::printf("windows of %d ranks in %s memory: as expected\n", size, argv[1]);
  return MPI_Finalize();
}
