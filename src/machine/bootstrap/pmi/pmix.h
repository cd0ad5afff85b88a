// A PE that a PMIx launcher started: srun, prterun, mpiexec.
//
// A second program with the same number is refused. The launcher ends the job when a PE dies; watch_fd() watches the launcher's process on this host.
#pragma once

#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/launcher/local_pes.h"
#include "machine/bootstrap/launcher/parent_watch.h"
#include "machine/bootstrap/pmi/pmix_library.h"

namespace weft::machine::bootstrap {

class PmixBootstrap final : public Bootstrap {
 public:
  static base::Result<std::unique_ptr<Bootstrap>> join();

  // PMIx_Finalize is called in finished() only: an exit before that must count as a death.
  ~PmixBootstrap() override = default;
  PmixBootstrap(const PmixBootstrap&) = delete;
  PmixBootstrap& operator=(const PmixBootstrap&) = delete;

  std::string_view name() const override { return "pmix"; }
  int pe() const override { return static_cast<int>(self_.rank); }
  int num_pes() const override { return num_pes_; }
  int local_rank() const override { return local_.rank; }
  int local_size() const override { return local_.size; }
  base::Result<std::vector<std::vector<std::byte>>> exchange(const std::vector<std::byte>& mine) override;
  base::Status barrier() override;
  void finished(int exit_code) override;
  void abort(int exit_code, std::string_view message) override;
  int watch_fd() const override { return launcher_.fd(); }
  base::Status watch_status() override { return launcher_.status(pe()); }

 private:
  explicit PmixBootstrap(PmixLibrary library) : library_(std::move(library)) {}

  base::Status read_num_pes();
  // Fails if a program has joined with this number before, and has ended.
  base::Status expect_unused();
  // Whether the server has such a value of this PE.
  bool has(const char* key);
  base::Result<std::vector<std::byte>> get_bytes(int pe, const std::string& key);
  base::Status check(int code, std::string_view what) const;

  ParentWatch launcher_{pmix_launcher()};
  PmixLibrary library_;
  PmixProcess self_{};
  int num_pes_ = 0;
  LocalPes local_;
  int round_ = 0;
};

}  // namespace weft::machine::bootstrap
