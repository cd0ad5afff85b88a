// One PE without a launcher: `python app.py`, or a plain binary.
#pragma once

#include <chrono>
#include <string>

#include "machine/bootstrap/bootstrap.h"

namespace weft::machine::bootstrap {

class SingletonBootstrap final : public Bootstrap {
 public:
  std::string_view name() const override { return "singleton"; }
  bool has_launcher() const override { return false; }
  int pe() const override { return 0; }
  int num_pes() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  base::Result<std::vector<std::vector<std::byte>>> exchange(const std::vector<std::byte>& mine) override;
  base::Status barrier() override { return {}; }
  void finished(int /*exit_code*/) override {}
  // Prints the message; the caller exits.
  void abort(int exit_code, std::string_view message) override;
  int watch_fd() const override { return -1; }
  std::string unique_name() const override;

 private:
  std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
};

}  // namespace weft::machine::bootstrap
