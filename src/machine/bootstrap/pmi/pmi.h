// A PE that a PMI launcher started: MPICH's mpiexec (Hydra), or srun --mpi=pmi2.
//
// PMI gives a number and a store of short texts. Bytes travel as hexadecimal digits, in pieces. The PEs of a host are
// found by an exchange. Hydra ends the job when a PE dies. srun does if it is told to: --kill-on-bad-exit=1.
#pragma once

#include <cstdint>
#include <string>

#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/launcher/local_pes.h"
#include "machine/bootstrap/pmi/pmi_connection.h"

namespace weft::machine::bootstrap {

struct PmiSettings {
  int fd = -1;
  int pe = 0;
  int num_pes = 1;
  std::uint64_t host = 0;  // base::host_number(), or another number in tests

  // From PMI_FD, PMI_RANK and PMI_SIZE; says which one is wrong.
  static base::Result<PmiSettings> from_environment();
};

class PmiBootstrap final : public Bootstrap {
 public:
  static base::Result<std::unique_ptr<Bootstrap>> join(const PmiSettings& settings);

  ~PmiBootstrap() override = default;
  PmiBootstrap(const PmiBootstrap&) = delete;
  PmiBootstrap& operator=(const PmiBootstrap&) = delete;

  std::string_view name() const override { return "pmi"; }
  int pe() const override { return settings_.pe; }
  int num_pes() const override { return settings_.num_pes; }
  int local_rank() const override { return local_.rank; }
  int local_size() const override { return local_.size; }
  base::Result<std::vector<std::vector<std::byte>>> exchange(const std::vector<std::byte>& mine) override;
  base::Status barrier() override;
  void finished(int exit_code) override;
  void abort(int exit_code, std::string_view message) override;
  int watch_fd() const override { return launcher_.fd(); }
  base::Status watch_status() override;

  // The limit for the bytes that one PE gives in one exchange; a larger size is refused when it is read.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  // Two digits a byte. Launchers take values of 1024 bytes, and Hydra puts a word in front of them.
  static constexpr std::size_t kPieceBytes = 480;

 private:
  explicit PmiBootstrap(const PmiSettings& settings) : settings_(settings), launcher_(settings.fd) {}

  base::Status start();
  base::Status put(const std::string& key, std::string_view value);
  base::Result<std::string> get(int pe, const std::string& key);
  base::Result<std::vector<std::byte>> get_bytes(int pe, int round);
  base::Status located(const base::Status& status, std::string_view what) const;

  PmiSettings settings_;
  PmiConnection launcher_;
  std::string store_;  // the name of the job's store
  LocalPes local_;
  int round_ = 0;
};

}  // namespace weft::machine::bootstrap
