// Kernels that write into memory of other PEs, and tell them by flags.
//
//   #include "weft/device/kernels.cuh"
//
//   // `inboxes` and `flags` have one address for each PE: those of weft.pgas.peer_addresses(), or of GlobalMemory::hold().
//   __global__ void send(const unsigned long long* inboxes, const unsigned long long* flags, const float* data, size_t bytes,
//                        int pe, unsigned round) {
//     using namespace weft::device;
//     put_signal_block(peer<float>(inboxes, pe), data, bytes, peer<Word>(flags, pe), round);
//   }
//
// This header includes nothing and allocates nothing. It compiles with nvcc and with NVRTC, for C++17 and later, and for devices of
// compute capability 7.0 and later. `weft.include_dir()` is the folder for CuPy and others that compile at run time; programs
// that link weft::weft have it.
//
// Memory. An address leads to memory of this device, or to memory of another device that this one has mapped: a segment that this
// PE has learned. It is valid as long as the program keeps the segment, and Weft does not check it.
//
// Flags. A flag is a word of 32 bits in device memory, aligned to 4 bytes. Its value only grows, cyclically: a flag has reached a
// value if it is fewer than 2^31 steps past it, so a count of rounds may pass 2^32. A flag has one writer at a time, or all of its
// writers use signal_add(). A stream waits for a flag by wait_on_stream(), and a coroutine by wait_for().
//
// Order. Everything that the caller has written before a signal is visible to everything behind a wait that has seen its value, on
// all devices and on the CPU: a signal releases and a wait acquires, at the scope of the system. For _warp and _block functions
// "the caller" is the whole warp or block.
//
// Callers. A plain function is called by one thread. A _warp function is called by all 32 threads of a warp, and a _block function by
// all threads of a block, each with the same arguments and not in a branch that some of them do not take.
//
// A wait spins and keeps its place on the device. The signal must not depend on work that can only start when the waiting kernel has
// ended, for example on a kernel behind it in the same stream, or on blocks of its own grid that do not fit beside it. A wait ends
// only when the value is reached: a kernel whose signal never comes keeps its device until its process ends.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "weft/device/kernels.cuh needs a device of compute capability 7.0 or later; compile for sm_70 or later"
#endif

namespace weft::device {

using Word = unsigned int;
static_assert(sizeof(Word) == 4, "flags have 32 bits");

// The memory of that PE as T. `addresses` is an array of addresses on this device.
template <class T>
__device__ inline T* peer(const unsigned long long* addresses, int pe) {
  return reinterpret_cast<T*>(addresses[pe]);
}

// --- Flags

__device__ inline bool has_reached(Word word, Word value) { return static_cast<int>(word - value) >= 0; }

// The value of a flag. What its writer has written before is visible to the caller.
__device__ inline Word load(const Word* flag) {
  Word value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// Sets a flag, after all that the calling thread has written.
__device__ inline void signal(Word* flag, Word value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
}

// Raises a flag, for several writers: each block of a grid, for example, adds 1. Between devices this needs NVLink, because
// atomic operations on the memory of another device do not pass PCIe.
__device__ inline void signal_add(Word* flag, Word amount) {
  asm volatile("red.release.sys.global.add.u32 [%0], %1;" : : "l"(flag), "r"(amount) : "memory");
}

__device__ inline void wait(const Word* flag, Word value) {
  while (!has_reached(load(flag), value)) {
  }
}

__device__ inline void wait_warp(const Word* flag, Word value) {
  wait(flag, value);
  __syncwarp();
}

// --- Inside of this header

namespace detail {

__device__ inline unsigned thread_in_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

__device__ inline unsigned threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }

__device__ inline unsigned thread_in_warp() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// Without __restrict__, by which a compiler may read the source through a cache that no wait refreshes. Four loads are under way at
// once all the same.
template <class Unit>
__device__ inline void copy_units(void* to, const void* from, size_t count, size_t thread,
                                  size_t num_threads) {
  Unit* const target = static_cast<Unit*>(to);
  const Unit* const source = static_cast<const Unit*>(from);
  size_t i = thread;
  for (; i + 3 * num_threads < count; i += 4 * num_threads) {
    const Unit first = source[i];
    const Unit second = source[i + num_threads];
    const Unit third = source[i + 2 * num_threads];
    const Unit fourth = source[i + 3 * num_threads];
    target[i] = first;
    target[i + num_threads] = second;
    target[i + 2 * num_threads] = third;
    target[i + 3 * num_threads] = fourth;
  }
  for (; i < count; i += num_threads) target[i] = source[i];
}

// The part of one of several threads.
__device__ inline void copy_part(void* to, const void* from, size_t bytes, size_t thread,
                                 size_t num_threads) {
  const size_t places = reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from);
  size_t copied = 0;
  if (places % sizeof(int4) == 0) {
    copied = bytes / sizeof(int4) * sizeof(int4);
    copy_units<int4>(to, from, copied / sizeof(int4), thread, num_threads);
  } else if (places % sizeof(int) == 0) {
    copied = bytes / sizeof(int) * sizeof(int);
    copy_units<int>(to, from, copied / sizeof(int), thread, num_threads);
  }
  copy_units<char>(static_cast<char*>(to) + copied, static_cast<const char*>(from) + copied, bytes - copied,
                   thread, num_threads);
}

}  // namespace detail

__device__ inline void wait_block(const Word* flag, Word value) {
  if (detail::thread_in_block() == 0) wait(flag, value);
  __syncthreads();
}

// --- Copies, from or to another device. The ranges do not overlap. They are fastest if both are aligned to 16 bytes. A put alone
// promises nothing to others: a signal of the same thread, warp or block does, or the end of the kernel.

__device__ inline void put(void* to, const void* from, size_t bytes) {
  detail::copy_part(to, from, bytes, 0, 1);
}

// All of it is written for the warp, or the block, when this returns.
__device__ inline void put_warp(void* to, const void* from, size_t bytes) {
  detail::copy_part(to, from, bytes, detail::thread_in_warp(), 32);
  __syncwarp();
}

__device__ inline void put_block(void* to, const void* from, size_t bytes) {
  detail::copy_part(to, from, bytes, detail::thread_in_block(), detail::threads_of_block());
  __syncthreads();
}

// --- Signals of a warp and of a block, after all that its threads have written.

// What other threads have written before the barrier, the release of this one makes visible too (PTX: causality order).
__device__ inline void signal_warp(Word* flag, Word value) {
  __syncwarp();
  if (detail::thread_in_warp() == 0) signal(flag, value);
}

__device__ inline void signal_block(Word* flag, Word value) {
  __syncthreads();
  if (detail::thread_in_block() == 0) signal(flag, value);
}

// --- A put and then its signal: who has seen the flag sees the data.

__device__ inline void put_signal(void* to, const void* from, size_t bytes, Word* flag, Word value) {
  put(to, from, bytes);
  signal(flag, value);
}

__device__ inline void put_signal_warp(void* to, const void* from, size_t bytes, Word* flag, Word value) {
  detail::copy_part(to, from, bytes, detail::thread_in_warp(), 32);
  signal_warp(flag, value);
}

__device__ inline void put_signal_block(void* to, const void* from, size_t bytes, Word* flag, Word value) {
  detail::copy_part(to, from, bytes, detail::thread_in_block(), detail::threads_of_block());
  signal_block(flag, value);
}

// --- Packets: small data that takes its flag along. A signal waits until all data has reached the peer, and then travels too; packets
// travel once. Each holds 4 bytes of data and the round, so they take twice the memory, and a receiver copies the data out of them.
//
// The bytes are a multiple of 4, and both ends of the data are aligned to 4. The room for packets has a packet for each 4 bytes, and
// is zero at first. A round is not 0, nor one that any packet in the room still has: take a count that grows, and leave out 0. A room is written again only when the receiver
// has taken what is in it: with an answer, say, or with two rooms in turn of two ends that both send in each round. A packet tells nothing
// of other data that its sender has written.

using Packet = unsigned long long;

namespace detail {

__device__ inline void put_packets_part(Packet* to, const void* from, size_t bytes, Word round, size_t thread,
                                        size_t num_threads) {
  for (size_t i = thread; i < bytes / sizeof(Word); i += num_threads) {
    const Packet packet = static_cast<const Word*>(from)[i] | static_cast<Packet>(round) << 32;
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(to + i), "l"(packet) : "memory");
  }
}

__device__ inline void take_packets_part(void* to, const Packet* from, size_t bytes, Word round,
                                         size_t thread, size_t num_threads) {
  for (size_t i = thread; i < bytes / sizeof(Word); i += num_threads) {
    Packet packet;
    do {
      asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(packet) : "l"(from + i) : "memory");
    } while (static_cast<Word>(packet >> 32) != round);
    static_cast<Word*>(to)[i] = static_cast<Word>(packet);
  }
}

}  // namespace detail

__device__ inline void put_packets(Packet* to, const void* from, size_t bytes, Word round) {
  detail::put_packets_part(to, from, bytes, round, 0, 1);
}

__device__ inline void put_packets_warp(Packet* to, const void* from, size_t bytes, Word round) {
  detail::put_packets_part(to, from, bytes, round, detail::thread_in_warp(), 32);
  __syncwarp();
}

__device__ inline void put_packets_block(Packet* to, const void* from, size_t bytes, Word round) {
  detail::put_packets_part(to, from, bytes, round, detail::thread_in_block(), detail::threads_of_block());
  __syncthreads();
}

// Waits until all have come, and copies the data.
__device__ inline void take_packets(void* to, const Packet* from, size_t bytes, Word round) {
  detail::take_packets_part(to, from, bytes, round, 0, 1);
}

__device__ inline void take_packets_warp(void* to, const Packet* from, size_t bytes, Word round) {
  detail::take_packets_part(to, from, bytes, round, detail::thread_in_warp(), 32);
  __syncwarp();
}

__device__ inline void take_packets_block(void* to, const Packet* from, size_t bytes, Word round) {
  detail::take_packets_part(to, from, bytes, round, detail::thread_in_block(), detail::threads_of_block());
  __syncthreads();
}

}  // namespace weft::device
