// Versions, time, memory and the machine: what needs no other process.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "entry/entry.h"
#include "entry/handles.h"
#include "entry/objects.h"
#include "models/mpi/objects/addresses.h"
#include "system/device_memory.h"

using namespace weft::mpi;

namespace {

constexpr std::size_t kCacheLine = 64;
// No process has more memory than addresses.
constexpr MPI_Aint kAddressSpaceBytes = MPI_Aint{1} << 47;

// The alignment of MPI_Alloc_mem: that of the info key mpi_minimum_memory_alignment, at least a cache line.
Error alignment_of(MPI_Info info_handle, std::size_t* alignment) {
  *alignment = kCacheLine;
  Info* info = nullptr;
  if (Error error = find_optional(info_handle, &info); !error.ok()) return error;
  const std::string* const text = info == nullptr ? nullptr : info->find("mpi_minimum_memory_alignment");
  if (text == nullptr) return {};
  const unsigned long long wanted = std::strtoull(text->c_str(), nullptr, 10);
  if (wanted == 0 || (wanted & (wanted - 1)) != 0 || wanted > (std::size_t{1} << 30)) {
    return {MPI_ERR_INFO_VALUE,
            weft::base::format("mpi_minimum_memory_alignment is '{}'; it must be a power of two", *text)};
  }
  *alignment = std::max<std::size_t>(kCacheLine, wanted);
  return {};
}

}  // namespace

int MPI_Get_version(int* version, int* subversion) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{version, "version"}, {subversion, "subversion"}}); !error.ok()) return error;
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return {};
  });
}

int MPI_Get_library_version(char* version, int* resultlen) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{version, "version"}, {resultlen, "resultlen"}}); !error.ok()) return error;
    copy_string("Weft " WEFT_VERSION ", MPI 5.0, standard ABI 1.0", MPI_MAX_LIBRARY_VERSION_STRING, version);
    *resultlen = static_cast<int>(std::strlen(version));
    return {};
  });
}

int MPI_Get_processor_name(char* name, int* resultlen) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{name, "name"}, {resultlen, "resultlen"}}); !error.ok()) return error;
    char host[MPI_MAX_PROCESSOR_NAME] = {};
    if (gethostname(host, sizeof(host) - 1) != 0) copy_string("localhost", sizeof(host), host);
    copy_string(host, MPI_MAX_PROCESSOR_NAME, name);
    *resultlen = static_cast<int>(std::strlen(name));
    return {};
  });
}

double MPI_Wtime() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double MPI_Wtick() {
  using Period = std::chrono::steady_clock::period;
  return static_cast<double>(Period::num) / static_cast<double>(Period::den);
}

int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{baseptr, "baseptr"}}); !error.ok()) return error;
    if (size < 0) return {MPI_ERR_ARG, weft::base::format("the size {} is negative", size)};
    std::size_t alignment = 0;
    if (Error error = alignment_of(info, &alignment); !error.ok()) return error;
    void* memory = nullptr;
    if (Error error = allocate_on_device(size, info, &memory); !error.ok()) return error;
    if (memory != nullptr) {
      std::memcpy(baseptr, static_cast<const void*>(&memory), sizeof(memory));
      return {};
    }
    // The memory is the program's, so it moves with a rank (mpi/host/libc/memory.cpp).
    const ProgramRuns program;
    if (size > kAddressSpaceBytes ||
        posix_memalign(&memory, alignment, std::max<std::size_t>(1, static_cast<std::size_t>(size))) != 0) {
      return {MPI_ERR_NO_MEM, weft::base::format("no {} bytes of memory are left", size)};
    }
    std::memcpy(baseptr, static_cast<const void*>(&memory), sizeof(memory));
    return {};
  });
}

int MPI_Free_mem(void* base) {
  if (is_sentinel(base))
    return raise(
        __func__, kNoObject,
        {MPI_ERR_BASE, weft::base::format("the memory is {}; give the address that MPI_Alloc_mem gave",
                                          describe_sentinel(base))});
  if (!free_on_device(base)) std::free(base);
  return MPI_SUCCESS;
}

// The levels mean nothing to Weft: they are for profiling libraries.
int MPI_Pcontrol(const int /*level*/, ...) { return MPI_SUCCESS; }

int MPI_Get_hw_resource_info(MPI_Info* hw_info) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{hw_info, "hw_info"}}); !error.ok()) return error;
    // A process shares memory with the others of its host. Weft knows no other kinds of resources.
    const Info::Pairs resources = {{"mpi_shared_memory", "true"}};
    *hw_info = make_handle<MPI_Info>(Ref<Info>::adopt(new Info(resources)));
    return {};
  });
}
