// What benchmarks/migration_times.cpp measures, asked of Charm++: moves of chares between two PEs.
//
//   charm_migration COUNT:SIZE:HOPS:ROUNDS
#include <algorithm>
#include <cstdio>
#include <vector>

#include "benchmarks/weft_bench/cores/pin.h"
#include "charm_migration.decl.h"

CProxy_Main main_proxy;
CProxy_Traveller travellers;

// A PE has many objects that ask for it; pinned again, it would find one usable core.
void pin() {
  static bool is_pinned = false;
  if (!is_pinned) weft::benchmarks::pin(CkMyPe());
  is_pinned = true;
}

class OnPe0 : public CkArrayMap {
 public:
  OnPe0() { pin(); }
  int procNum(int, const CkArrayIndex&) override { return 0; }
};

class Main : public CBase_Main {
 public:
  explicit Main(CkArgMsg* arguments) {
    main_proxy = thisProxy;
    if (arguments->argc != 2 || std::sscanf(arguments->argv[1], "%d:%d:%d:%d", &count_, &size_, &hops_, &rounds_) != 4) {
      CkAbort("usage: charm_migration COUNT:SIZE:HOPS:ROUNDS");
    }
    CkArrayOptions options(count_);
    options.setMap(CProxy_OnPe0::ckNew());
    travellers = CProxy_Traveller::ckNew(size_, options);
  }
  void ready() { begin(); }
  void arrived(int count) {
    if (count != count_) CkAbort("chares are missing");
    const double time_s = CkWallTimer() - start_s_;
    if (round_++ > 0) times_s_.push_back(time_s);
    if (round_ <= rounds_) return begin();
    std::sort(times_s_.begin(), times_s_.end());
    const double median_s = times_s_[times_s_.size() / 2];
    if (hops_ > 1) {
      std::printf("{\"size_bytes\": %d, \"metric\": \"hop_us\", \"value\": %.9g}\n", size_, median_s / hops_ * 1e6);
    } else {
      std::printf("{\"size_bytes\": %d, \"metric\": \"%d_moves_ms\", \"value\": %.9g}\n", size_, count_, median_s * 1e3);
    }
    CkExit();
  }

 private:
  void begin() {
    start_s_ = CkWallTimer();
    travellers.go(hops_);
  }
  int count_ = 0, size_ = 0, hops_ = 0, rounds_ = 0, round_ = 0;
  double start_s_ = 0;
  std::vector<double> times_s_;
};

class Traveller : public CBase_Traveller {
 public:
  explicit Traveller(int size) : state_(size, 1) {
    contribute(CkCallback(CkReductionTarget(Main, ready), main_proxy));
  }
  explicit Traveller(CkMigrateMessage*) {}
  void pup(PUP::er& p) override { p | state_; p | hops_left_; }

  void go(int hops) {
    hops_left_ = hops;
    hop();
  }
  void ckJustMigrated() override {
    CBase_Traveller::ckJustMigrated();
    if (hops_left_ > 0) return hop();
    int one = 1;
    contribute(sizeof one, &one, CkReduction::sum_int, CkCallback(CkReductionTarget(Main, arrived), main_proxy));
  }

 private:
  void hop() {
    --hops_left_;
    migrateMe(1 - CkMyPe());
  }
  std::vector<char> state_;
  int hops_left_ = 0;
};

#include "charm_migration.def.h"
