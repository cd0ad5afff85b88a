// A stand-in for libcuda.so.1 that keeps "device" memory on the host, so that everything of kind cuda but the
// hardware runs on any machine. It is strict where the driver is lenient, since mistakes that a driver
// tolerates today are what it is here to find: a call without the right context current fails and is counted.
//
// fake_cuda.cpp has devices and memory, fake_cuda_streams.cpp copies, streams and events, and fake_cuda_kernels.cpp kernels.
//
// Streams move when an event is queried, one operation of each per query. The devices' clock moves on by a millisecond with each
// copy. The tests reach it through fake_cuda().
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

struct CudaContextTag {
  int device = 0;
  int retained = 0;
};

struct FakeEventState {
  bool done = true;  // an event that was never recorded is done, as with the driver
  int at_ms = -1;    // negative: never recorded
};

struct CudaEventTag {
  int device = 0;
  bool is_timed = false;
  std::shared_ptr<FakeEventState> recorded = std::make_shared<FakeEventState>();
};

struct CudaStreamTag {
  int device = 0;
  // A program captures a graph from it. An event there, which could only be queried, is refused.
  bool is_captured = false;
  // Each returns whether it is done.
  std::deque<std::function<bool()>> queue;
};

// As the driver passes it, by value.
struct FakeIpcHandle {
  std::uintptr_t base;
  std::uint64_t buffer_id;
  std::uint64_t size_bytes;
  std::uint64_t inode;
  int pid;
  int file;
  char unused[24];
};
static_assert(sizeof(FakeIpcHandle) == 64);

// CUDA_MEMCPY2D: for each side x, y, type, host memory, device memory, array and pitch.
struct FakeCopySide {
  std::size_t x;
  std::size_t y;
  unsigned type;
  const void* host;
  unsigned long long address;
  void* array;
  std::size_t pitch;
};
struct FakeCopy2D {
  FakeCopySide from;
  FakeCopySide to;
  std::size_t row_bytes;
  std::size_t rows;
};
static_assert(sizeof(FakeCopy2D) == 128);

struct FakeCuda {
  struct Block {
    std::size_t size_bytes = 0;
    int device = 0;
    std::uint64_t buffer_id = 0;
    unsigned memory_type = 2;
    bool managed = false;
    bool mapped_here = false;
    bool imported = false;
    int file = -1;  // once other processes may map it
    bool copies_are_synchronous = false;
  };

  int num_devices = 2;
  // Ordered pairs of devices of which the first does not reach the second.
  std::set<std::pair<int, int>> unreachable;
  // By function name: what its next call returns instead of doing anything.
  std::map<std::string, int> fail_next;
  // What every EventQuery returns, as after a kernel that broke the context; 0: works.
  int broken = 0;
  // How often a query of a default stream says that it is not ready.
  int busy_queries = 0;
  void* next_address = nullptr;

  std::map<std::uintptr_t, Block> blocks;
  std::vector<std::unique_ptr<CudaContextTag>> contexts;
  std::vector<CudaStreamTag*> streams;           // oldest first
  std::map<int, CudaStreamTag> default_streams;  // by device
  std::set<CudaEventTag*> events;
  std::vector<std::shared_ptr<void>> modules;
  std::uint64_t next_buffer_id = 1;

  std::map<std::string, int> calls;
  int wrong_context_calls = 0;
  // Copies that a real driver would have blocked the CPU for.
  int blocking_copies = 0;
  int now_ms = 0;
  int peer_copies = 0;

  // What another library would do behind our back.
  std::uintptr_t add_block(std::size_t size_bytes, int device, unsigned memory_type = 2,
                           bool managed = false);
  void remove_block(std::uintptr_t base);
  Block* find(std::uintptr_t address, std::uintptr_t* base = nullptr);
};

extern "C" FakeCuda* fake_cuda();
// A driver that was never used. REQUIRES: nothing is allocated or made any more.
extern "C" void fake_cuda_reset();
