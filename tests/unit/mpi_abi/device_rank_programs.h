// Programs of virtual ranks whose data is in emulated device memory, see rank_programs.h.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "weft/mpi/weft_mpi_stream.h"

#include "models/mpi/process.h"
#include "rank_programs.h"
#include "tests/support/busy_stream.h"
#include "tests/support/device_memory.h"

namespace weft::testing {

inline memory::Memory& memory_of_rank() { return mpi::this_process().runtime().memory(); }

// Ints on the device, or in host memory.
class RankInts {
 public:
  RankInts(bool on_device, const std::vector<int>& values)
      : memory_(memory_of_rank(), {on_device ? memory::Kind::kEmulated : memory::Kind::kHost, 0},
                values.size() * sizeof(int)) {
    std::memcpy(bytes(), values.data(), values.size() * sizeof(int));
  }
  void* data() { return memory_.buffer().data; }
  std::uint8_t* bytes() { return view(memory_of_rank(), memory_.buffer()); }
  std::vector<int> now() {
    std::vector<int> values(memory_.buffer().size_bytes / sizeof(int));
    std::memcpy(values.data(), bytes(), values.size() * sizeof(int));
    return values;
  }

 private:
  TestMemory memory_;
};

// Ranks of one process have their data in host and in device memory.
inline int moves_device_memory() {
  MPI_Init(nullptr, nullptr);
  {
    const World world;
    for (const std::size_t count : {1U, 5000U, 40'000U}) {
      for (const int mix : {0, 1, 2}) {
        const bool on_device = mix == 2 || world.rank % 2 == mix;
        const std::vector<int> mine = numbers_of(world.rank, count);
        const std::vector<int> nothing(count, -1);
        const auto number = static_cast<int>(count);
        RankInts out(on_device, mine);
        RankInts in(on_device, nothing);
        MPI_Sendrecv(out.data(), number, MPI_INT, world.right(), 1, in.data(), number, MPI_INT, world.left(),
                     1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        WEFT_RANK_EXPECT(in.now() == numbers_of(world.left(), count));
        const int root = world.size - 1;
        RankInts data(on_device, world.rank == root ? mine : nothing);
        MPI_Bcast(data.data(), number, MPI_INT, root, MPI_COMM_WORLD);
        WEFT_RANK_EXPECT(data.now() == numbers_of(root, count));
        std::vector<int> sum(count);
        for (int rank = 0; rank < world.size; ++rank)
          for (std::size_t i = 0; i < count; ++i) sum[i] += rank * 1000 + static_cast<int>(i);
        MPI_Allreduce(out.data(), in.data(), number, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        WEFT_RANK_EXPECT(in.now() == sum);
        RankInts result(on_device, nothing);
        MPI_Reduce(out.data(), result.data(), number, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        WEFT_RANK_EXPECT(result.now() == (world.rank == root ? sum : nothing));
      }
    }
  }
  MPI_Finalize();
  return 0;
}

inline MPI_Comm world_with_stream(memory::StreamHandle stream) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_stream", std::to_string(reinterpret_cast<std::uintptr_t>(stream)).c_str());
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  return comm;
}

// Work that is queued on the stream of a communicator comes before its transfers.
inline int waits_for_streams() {
  MPI_Init(nullptr, nullptr);
  {
    const World world;
    RankInts out(true, std::vector<int>(100, 0));
    RankInts in(true, std::vector<int>(100, -1));
    std::uint8_t* const bytes = out.bytes();
    bool may_end = false;
    memory::EmulatedBackend& device = emulated(memory_of_rank());
    const memory::StreamHandle stream = stream_with(device, 0, [&may_end, bytes]() -> base::Status {
      if (!may_end) return base::Status::pending();
      std::memset(bytes, 1, 100 * sizeof(int));
      return {};
    });
    MPI_Comm comm = world_with_stream(stream);
    std::array<MPI_Request, 2> requests{};
    MPI_Irecv(in.data(), 100, MPI_INT, world.left(), 0, comm, requests.data());
    MPI_Isend(out.data(), 100, MPI_INT, world.right(), 0, comm, &requests[1]);
    for (int attempt = 0; attempt < 200; ++attempt) {
      int flag = 0;
      MPI_Testall(2, requests.data(), &flag, MPI_STATUSES_IGNORE);
      WEFT_RANK_EXPECT(flag == 0);
    }
    may_end = true;
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    WEFT_RANK_EXPECT(in.now() == std::vector<int>(100, 0x01010101));
    // A collective too.
    int polls = 0;
    const base::Status queued = device.launch(stream, 0, [&polls, bytes]() -> base::Status {
      if (++polls < 500) return base::Status::pending();
      std::memset(bytes, 2, 100 * sizeof(int));
      return {};
    });
    WEFT_RANK_EXPECT(queued.ok());
    MPI_Allreduce(out.data(), in.data(), 100, MPI_INT, MPI_SUM, comm);
    WEFT_RANK_EXPECT(in.now() == std::vector<int>(100, 0x02020202 * world.size));
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  return 0;
}

// Memory that MPI_Alloc_mem allocates on a device, and keys that it refuses.
inline int allocates_on_devices() {
  MPI_Init(nullptr, nullptr);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  const auto allocate = [](const char* kind, void** address) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "weft_memory_kind", kind);
    const int code = MPI_Alloc_mem(100, info, static_cast<void*>(address));
    MPI_Info_free(&info);
    int error_class = 0;
    MPI_Error_class(code, &error_class);
    return error_class;
  };
  void* address = nullptr;
  WEFT_RANK_EXPECT(allocate("emulated:1", &address) == MPI_SUCCESS);
  WEFT_RANK_EXPECT(memory_of_rank().place_of(address) == (memory::Place{memory::Kind::kEmulated, 1}));
  WEFT_RANK_EXPECT(MPI_Free_mem(address) == MPI_SUCCESS);
  WEFT_RANK_EXPECT(memory_of_rank().place_of(address).is_host());
  WEFT_RANK_EXPECT(allocate("host", &address) == MPI_SUCCESS);
  std::memset(address, 1, 100);
  WEFT_RANK_EXPECT(MPI_Free_mem(address) == MPI_SUCCESS);
  WEFT_RANK_EXPECT(allocate("imagined", &address) == MPI_ERR_INFO_VALUE);
  WEFT_RANK_EXPECT(allocate("emulated:x", &address) == MPI_ERR_INFO_VALUE);
  WEFT_RANK_EXPECT(allocate("emulated:99", &address) == MPI_ERR_NO_MEM);
  // The end of the job frees what the program has not.
  WEFT_RANK_EXPECT(allocate("emulated", &address) == MPI_SUCCESS);
  MPI_Finalize();
  WEFT_RANK_EXPECT(MPI_Free_mem(address) == MPI_SUCCESS);
  return 0;
}

// The ranks' streams exchange messages among kernels: once as they are, and as graphs.
inline int queues_messages_on_streams() {
  MPI_Init(nullptr, nullptr);
  {
    const World world;
    RankInts out(true, {0});
    RankInts in(true, {-1});
    auto* const sent = reinterpret_cast<int*>(out.bytes());
    const auto* const arrived = reinterpret_cast<const int*>(in.bytes());
    std::vector<int> got;
    memory::EmulatedBackend& device = emulated(memory_of_rank());
    const memory::StreamHandle stream = device.create_stream(0).value();
    MPI_Info info = MPI_INFO_NULL;
    MPIX_Stream handle = MPIX_STREAM_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "type", "emulated");
    MPIX_Info_set_hex(info, "value", static_cast<const void*>(&stream), sizeof stream);
    WEFT_RANK_EXPECT(MPIX_Stream_create(info, &handle) == MPI_SUCCESS);
    MPI_Info_free(&info);
    WEFT_RANK_EXPECT(MPIX_Stream_comm_create(MPI_COMM_WORLD, handle, &comm) == MPI_SUCCESS);
    const auto queue_step = [&] {
      const bool makes =
          device.launch(stream, 0, [&] { return *sent += world.rank + 1, base::Status(); }).ok();
      std::array<MPI_Request, 2> requests{};
      MPIX_Irecv_enqueue(in.data(), 1, MPI_INT, world.left(), 0, comm, requests.data());
      MPIX_Isend_enqueue(out.data(), 1, MPI_INT, world.right(), 0, comm, &requests[1]);
      MPIX_Waitall_enqueue(2, requests.data(), MPI_STATUSES_IGNORE);
      return makes && device.launch(stream, 0, [&] { return got.push_back(*arrived), base::Status(); }).ok();
    };
    for (int i = 0; i < 3; ++i) WEFT_RANK_EXPECT(queue_step());
    WEFT_RANK_EXPECT(got.empty());
    WEFT_RANK_EXPECT(Weft_stream_synchronize(handle) == MPI_SUCCESS);
    WEFT_RANK_EXPECT(device.begin_capture(stream, 0).ok());
    for (int i = 0; i < 2; ++i) WEFT_RANK_EXPECT(queue_step());
    const memory::SoftwareDevice::Graph graph = device.end_capture(stream, 0).value();
    for (int i = 0; i < 10; ++i) WEFT_RANK_EXPECT(device.launch_graph(graph, stream, 0).ok());
    WEFT_RANK_EXPECT(queue_step());
    WEFT_RANK_EXPECT(Weft_stream_synchronize(handle) == MPI_SUCCESS);
    WEFT_RANK_EXPECT(got.size() == 24);
    for (std::size_t i = 0; i < got.size(); ++i)
      WEFT_RANK_EXPECT(got[i] == (world.left() + 1) * static_cast<int>(i + 1));
    MPI_Barrier(MPI_COMM_WORLD);  // the watch does not know what a graph queues
    MPI_Comm_free(&comm);
    MPIX_Stream_free(&handle);
    WEFT_RANK_EXPECT(device.destroy_stream(stream).ok());
  }
  MPI_Finalize();
  return 0;
}

}  // namespace weft::testing
