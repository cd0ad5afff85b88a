// The few functions of the PMIx client library (libpmix.so.2) that Weft calls, found at run time so that a
// program needs PMIx only where a launcher that speaks it started the program.
//
// Layouts and values are those of the PMIx standard, versions 4 and 5. Not unloaded: PMIx keeps threads.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/status.h"

namespace weft::machine::bootstrap {

struct PmixProcess {
  char nspace[256];
  std::uint32_t rank;
};

struct PmixBytes {
  char* bytes;
  std::size_t size;
};

struct PmixValue {
  std::uint16_t type;
  union {
    bool flag;
    std::uint32_t uint32;
    PmixBytes bytes;
    void* largest_member[3];
  };
};

struct PmixInfo {
  char key[512];
  std::uint32_t flags;
  PmixValue value;
};

static_assert(sizeof(PmixProcess) == 260 && sizeof(PmixValue) == 32 && offsetof(PmixInfo, value) == 520 &&
              sizeof(PmixInfo) == 552);

inline constexpr int kPmixSuccess = 0;
inline constexpr std::uint32_t kPmixRankWildcard = UINT32_MAX - 1;
inline constexpr std::uint8_t kPmixScopeGlobal = 3;

inline constexpr std::uint16_t kPmixBool = 1;
inline constexpr std::uint16_t kPmixUint32 = 14;
inline constexpr std::uint16_t kPmixByteObject = 27;

inline constexpr char kPmixJobSize[] = "pmix.job.size";
inline constexpr char kPmixLocalRank[] = "pmix.lrank";
inline constexpr char kPmixCollectData[] = "pmix.collect";
// The server answers from what it has; else it may wait for the value.
inline constexpr char kPmixImmediate[] = "pmix.immediate";

// The process on this host to which this one's PMIx library speaks, for example with a shell between them.
pid_t pmix_launcher();

struct PmixLibrary {
  int (*init)(PmixProcess* self, PmixInfo* info, std::size_t count) = nullptr;
  int (*finalize)(const PmixInfo* info, std::size_t count) = nullptr;
  int (*put)(std::uint8_t scope, const char* key, PmixValue* value) = nullptr;
  int (*commit)() = nullptr;
  int (*fence)(const PmixProcess* processes, std::size_t process_count, const PmixInfo* info,
               std::size_t count) = nullptr;
  // The value is malloc'ed, and so are its bytes.
  int (*get)(const PmixProcess* process, const char* key, const PmixInfo* info, std::size_t count,
             PmixValue** value) = nullptr;
  int (*abort)(int status, const char* message, PmixProcess* processes, std::size_t count) = nullptr;
  const char* (*error_string)(int status) = nullptr;
  std::string path;

  // The launcher's own copy where it can be found, else what the dynamic linker finds.
  static base::Result<PmixLibrary> load();
};

}  // namespace weft::machine::bootstrap
