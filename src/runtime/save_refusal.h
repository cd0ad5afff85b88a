// While it exists, what belongs to this job alone cannot be packed on this thread: futures, global pointers, teams. The bytes go
// into a saved or protected state, and a later job has no such future, segment or team.
//
// Thread-local, and not a part of Pup, because types pack themselves at several depths and in two languages.
#pragma once

#include <string>
#include <utility>

namespace weft::runtime {

class SaveRefusal {
 public:
  // `holder` is for the error: "Cell[3] on PE 1".
  explicit SaveRefusal(std::string holder) : holder_(std::move(holder)), outer_(active_) { active_ = this; }
  ~SaveRefusal() { active_ = outer_; }
  SaveRefusal(const SaveRefusal&) = delete;
  SaveRefusal& operator=(const SaveRefusal&) = delete;

  static bool is_active() { return active_ != nullptr; }
  // Throws Error(kInvalidArgument) if one exists. `what()` is what cannot be saved, with the reason: "a future, which ...".
  template <class What>
  static void check(const What& what) {
    if (active_ != nullptr) [[unlikely]]
      active_->refuse(what());
  }

 private:
  [[noreturn, gnu::cold]] void refuse(const std::string& what) const;

  static inline thread_local SaveRefusal* active_ = nullptr;
  std::string holder_;
  SaveRefusal* outer_;
};

}  // namespace weft::runtime
