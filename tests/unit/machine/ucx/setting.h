// Environment variables that are set, or not set, while an object lives.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace weft::machine::ucx {

class Setting {
 public:
  Setting(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    put(value);
  }
  ~Setting() { put(before_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  void put(const std::optional<std::string>& value) const {
    if (value) {
      setenv(name_, value->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> before_;
};

struct NoSetting : Setting {
  explicit NoSetting(const char* name) : Setting(name, std::nullopt) {}
};

}  // namespace weft::machine::ucx
