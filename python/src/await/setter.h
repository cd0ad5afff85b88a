// Which part of a program sets a future, for the error of a second set: the chare, and the function and line that call set().
//
// A setter is noted without copying its names. It is packed only for another PE and for the PE's FutureTable. The bytes that come
// from another PE are checked when they are unpacked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "weft/runtime/messenger.h"

#include "await/running_chare.h"
#include "support/support.h"

namespace weft::python {

// The packed names of a function and its file, each with a byte of length in front.
inline constexpr std::size_t kLongestSetterName = 200;
inline constexpr std::size_t kLongestSetterNames = 2 * (1 + kLongestSetterName);

struct SetterSite;

class Setter {
 public:
  // Enough for any packed setter.
  using Packed = std::array<char, sizeof(RunningChare) + sizeof(std::uint32_t) + kLongestSetterNames>;

  Setter() = default;
  // The Python code that calls into the extension, on PE `pe`.
  static Setter here(std::uint32_t pe);
  // Damaged bytes give a setter without names.
  static Setter unpack(std::uint32_t pe, std::string_view packed);
  Setter(const Setter&) = delete;
  Setter(Setter&& other) noexcept
      : chare_(other.chare_), site_(std::exchange(other.site_, nullptr)), pe_(other.pe_) {}
  Setter& operator=(Setter&& other) noexcept {
    chare_ = other.chare_;
    std::swap(site_, other.site_);
    pe_ = other.pe_;
    return *this;
  }
  ~Setter() {
    if (site_ != nullptr) release();
  }

  bool is_known() const { return site_ != nullptr; }
  // The packed bytes are in `room`. REQUIRES: is_known().
  std::string_view pack(Packed& room) const;
  // "Ring[3] on PE 1 (Ring.work, ring.py:12)". Leaves out what is not known. REQUIRES: is_known().
  std::string text(runtime::Messenger& messenger) const;

 private:
  Setter(const RunningChare& chare, SetterSite* site, std::uint32_t pe);
  void release();

  RunningChare chare_;
  SetterSite* site_ = nullptr;  // a share
  std::uint32_t pe_ = 0;
};

// Makes errors name the setters that other PEs have packed. Called once, when the extension is initialised.
void init_setter();

}  // namespace weft::python
