// Memory of devices for the programs of these tests: emulated devices, and CUDA's through the driver, which is loaded at run time.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "%s:%d: rank %d: %s is not true\n", __FILE__, __LINE__, device::rank(), \
                   #condition);                                                                    \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                                \
    }                                                                                              \
  } while (0)

namespace device {

inline int rank() {
  int number = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  return number;
}

// What the programs use of CUDA's driver.
class Cuda {
 public:
  using Address = unsigned long long;
  using Stream = void*;

  static const Cuda& driver() {
    static const Cuda cuda;
    return cuda;
  }
  int (*MemAlloc)(Address*, std::size_t) = nullptr;
  int (*MemFree)(Address) = nullptr;
  int (*MemcpyHtoD)(Address, const void*, std::size_t) = nullptr;
  int (*MemcpyDtoH)(void*, Address, std::size_t) = nullptr;
  int (*MemcpyDtoDAsync)(Address, Address, std::size_t, Stream) = nullptr;
  int (*StreamCreate)(Stream*, unsigned) = nullptr;
  int (*StreamDestroy)(Stream) = nullptr;
  int (*StreamSynchronize)(Stream) = nullptr;

 private:
  Cuda() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(library_ != nullptr);
    int (*init)(unsigned) = nullptr;
    int (*count)(int*) = nullptr;
    int (*retain)(void**, int) = nullptr;
    int (*set_current)(void*) = nullptr;
    void* context = nullptr;
    find("cuInit", init);
    find("cuDeviceGetCount", count);
    find("cuDevicePrimaryCtxRetain", retain);
    find("cuCtxSetCurrent", set_current);
    find("cuMemAlloc_v2", MemAlloc);
    find("cuMemFree_v2", MemFree);
    find("cuMemcpyHtoD_v2", MemcpyHtoD);
    find("cuMemcpyDtoH_v2", MemcpyDtoH);
    find("cuMemcpyDtoDAsync_v2", MemcpyDtoDAsync);
    find("cuStreamCreate", StreamCreate);
    find("cuStreamDestroy_v2", StreamDestroy);
    find("cuStreamSynchronize", StreamSynchronize);
    int num_devices = 0;
    CHECK(init(0) == 0 && count(&num_devices) == 0 && num_devices > 0);
    // The one that Weft uses for a process of one rank.
    CHECK(retain(&context, rank() % num_devices) == 0 && set_current(context) == 0);
  }
  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    CHECK(function != nullptr);
  }

  void* library_ = nullptr;
};

// "host", "emulated" or "cuda".
inline std::string& kind() {
  static std::string name = "host";
  return name;
}

// Bytes on the device of this process. The host reads and writes them by copies.
class Bytes {
 public:
  explicit Bytes(std::size_t size, std::string kind_in = kind()) : kind_(std::move(kind_in)), size_(size) {
    const std::size_t room = size == 0 ? 1 : size;
    if (kind_ == "cuda") {
      Cuda::Address address = 0;
      CHECK(Cuda::driver().MemAlloc(&address, room) == 0);
      data_ = reinterpret_cast<char*>(address);
    } else {
      MPI_Info info;
      MPI_Info_create(&info);
      MPI_Info_set(info, "weft_memory_kind", kind_.c_str());
      CHECK(MPI_Alloc_mem(static_cast<MPI_Aint>(room), info, &data_) == MPI_SUCCESS);
      MPI_Info_free(&info);
    }
  }
  Bytes(const std::vector<char>& bytes) : Bytes(bytes.size()) { write(bytes); }
  ~Bytes() {
    if (data_ == nullptr) return;
    if (kind_ == "cuda") {
      Cuda::driver().MemFree(reinterpret_cast<Cuda::Address>(data_));
    } else {
      MPI_Free_mem(data_);
    }
  }
  Bytes(Bytes&& other) noexcept
      : kind_(other.kind_), size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
  Bytes& operator=(Bytes&&) = delete;

  char* data() const { return data_; }
  std::size_t size() const { return size_; }

  // MPI_Unpack and MPI_Pack copy to and from emulated memory; the unit tests check them against another way.
  void write(const std::vector<char>& bytes) {
    if (bytes.empty()) return;
    if (kind_ == "cuda") {
      CHECK(Cuda::driver().MemcpyHtoD(reinterpret_cast<Cuda::Address>(data_), bytes.data(), bytes.size()) ==
            0);
    } else {
      MPI_Count at = 0;
      const auto count = static_cast<MPI_Count>(bytes.size());
      CHECK(MPI_Unpack_c(bytes.data(), count, &at, data_, count, MPI_BYTE, MPI_COMM_SELF) == MPI_SUCCESS);
    }
  }
  std::vector<char> read() const {
    std::vector<char> bytes(size_);
    if (bytes.empty()) return bytes;
    if (kind_ == "cuda") {
      CHECK(Cuda::driver().MemcpyDtoH(bytes.data(), reinterpret_cast<Cuda::Address>(data_), size_) == 0);
    } else {
      MPI_Count at = 0;
      const auto count = static_cast<MPI_Count>(size_);
      CHECK(MPI_Pack_c(data_, count, MPI_BYTE, bytes.data(), count, &at, MPI_COMM_SELF) == MPI_SUCCESS);
    }
    return bytes;
  }

 private:
  std::string kind_;
  std::size_t size_;
  char* data_ = nullptr;
};

// Ints in such memory.
class Ints {
 public:
  explicit Ints(const std::vector<int>& values, std::string kind_in = kind())
      : bytes_(values.size() * sizeof(int), std::move(kind_in)) {
    write(values);
  }
  int* data() const { return reinterpret_cast<int*>(bytes_.data()); }
  void write(const std::vector<int>& values) {
    std::vector<char> bytes(values.size() * sizeof(int));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    bytes_.write(bytes);
  }
  std::vector<int> read() const {
    const std::vector<char> bytes = bytes_.read();
    std::vector<int> values(bytes.size() / sizeof(int));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  Bytes bytes_;
};

}  // namespace device
