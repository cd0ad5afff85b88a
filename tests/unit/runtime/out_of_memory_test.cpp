// A PE that runs out of memory inside a callback of the machine ends the job; no exception reaches the machine,
// whose frames may be C's.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

// Address space that this process may still take, until it goes out of scope.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(rlim_t more_bytes) {
    rlim_t used_pages = 0;
    std::ifstream("/proc/self/statm") >> used_pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit limited = before_;
    limited.rlim_cur = used_pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more_bytes;
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  }
  ~AddressSpaceLimit() { EXPECT_EQ(setrlimit(RLIMIT_AS, &before_), 0); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(OutOfMemory, ABroadcastThatCannotBeSentOnEndsTheJob) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends the process when an allocation fails";
#else
  constexpr std::size_t kBytes = std::size_t{33} << 20;  // its block of 64 MiB is never part of the heap
  constexpr HandlerId kHandler = kNumHandlers - 1;
  testing::InProcessJob job(10);  // PE 1 sends on to PE 9
  for (int pe = 0; pe < job.num_pes(); ++pe)
    job.runtime(pe).set_handler(kHandler, [](void*, MessagePtr) {}, nullptr);
  Runtime& inner = job.runtime(1);
  static_cast<void>(Message::create(inner, kHandler, kBytes));  // leaves a block for what arrives
  job.runtime(0).broadcast(Message::create(job.runtime(0), kHandler, kBytes));
  {
    AddressSpaceLimit limit(rlim_t{8} << 20);
    for (int i = 0; i < 100 && inner.failure().empty(); ++i) EXPECT_NO_THROW(inner.step());
  }
  EXPECT_NE(inner.failure().find("no memory to forward a broadcast of 34603008 bytes from PE 0"),
            std::string::npos)
      << inner.failure();
#endif
}

}  // namespace
}  // namespace weft::runtime
