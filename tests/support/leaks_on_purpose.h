// For a test in which Weft leaves memory to the system: the leak sanitizer, where there is one, overlooks
// what this thread allocates while a guard lives.
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
