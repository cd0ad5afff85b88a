// A folder for the files of one test, and what is done to them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/base/status.h"

namespace weft::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-checkpoint-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The seed of a random test: WEFT_TEST_SEED, or the one that it has without.
inline std::uint32_t seed_of_test(std::uint32_t usual) {
  const char* const wanted = std::getenv("WEFT_TEST_SEED");
  return wanted == nullptr ? usual : static_cast<std::uint32_t>(std::stoul(wanted));
}

inline std::vector<char> read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_all(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// The same for a file of that size, without making it anew, which takes a file system longer.
inline void overwrite(const std::string& path, const std::vector<char>& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// The code of the status. Expects the message of a failure to have `part`.
inline base::StatusCode code_of(const base::Status& status, const std::string& part = "") {
  EXPECT_TRUE(status.ok() || status.message().find(part) != std::string::npos) << status.message();
  return status.code();
}

// Calls `read` for the file with each of its bits flipped, for each shorter length, and with a byte too many. Each must be
// refused with a Status that names the file.
template <class Read>
void expect_every_damage_found(const std::string& path, Read read) {
  const std::vector<char> whole = read_all(path);
  ASSERT_FALSE(whole.empty());
  ASSERT_EQ(code_of(read()), base::StatusCode::kOk);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<char> damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      overwrite(path, damaged);
      ASSERT_NE(code_of(read(), path), base::StatusCode::kOk) << "bit " << bit << " of byte " << i;
    }
  }
  overwrite(path, whole);
  for (std::size_t size = whole.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    ASSERT_EQ(code_of(read(), path), base::StatusCode::kCorrupt)
        << size << " of " << whole.size() << " bytes";
  }
  std::vector<char> longer = whole;
  longer.push_back(0);
  write_all(path, longer);
  ASSERT_EQ(code_of(read(), path), base::StatusCode::kCorrupt);
  write_all(path, whole);
  ASSERT_EQ(code_of(read()), base::StatusCode::kOk);
}

}  // namespace weft::testing
