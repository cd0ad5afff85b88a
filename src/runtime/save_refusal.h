// While it exists, futures cannot be packed on this thread: the bytes go into a file, and a later job has no such future.
//
// Thread-local, and not a part of Pup, because types pack themselves at several depths and in two languages.
#pragma once

#include <string>
#include <utility>

namespace weft::runtime {

class FutureRefusal {
 public:
  // `holder` is for the error: "Cell[3] on PE 1".
  explicit FutureRefusal(std::string holder) : holder_(std::move(holder)), outer_(active_) { active_ = this; }
  ~FutureRefusal() { active_ = outer_; }
  FutureRefusal(const FutureRefusal&) = delete;
  FutureRefusal& operator=(const FutureRefusal&) = delete;

  // Throws Error(kInvalidArgument) if one exists.
  static void check() {
    if (active_ != nullptr) [[unlikely]]
      active_->refuse();
  }

 private:
  [[noreturn, gnu::cold]] void refuse() const;

  static inline thread_local FutureRefusal* active_ = nullptr;
  std::string holder_;
  FutureRefusal* outer_;
};

}  // namespace weft::runtime
