// For a test in which Weft does not free memory on purpose. While a guard lives, the leak sanitizer ignores
// the allocations of this thread.
#pragma once

extern "C" {
[[gnu::weak]] void __lsan_disable();
[[gnu::weak]] void __lsan_enable();
}

namespace weft::test_support {

class LeaksOnPurpose {
 public:
  LeaksOnPurpose() {
    if (&__lsan_disable != nullptr) __lsan_disable();
  }
  ~LeaksOnPurpose() {
    if (&__lsan_enable != nullptr) __lsan_enable();
  }
  LeaksOnPurpose(const LeaksOnPurpose&) = delete;
  LeaksOnPurpose& operator=(const LeaksOnPurpose&) = delete;
};

}  // namespace weft::test_support
