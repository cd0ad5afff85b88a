// WaitList: what the parties on one PE wait for, made when a report is asked for (src/runtime/waits/).
//
// Nothing is recorded while a program runs. A suspended coroutine (DetachedTask) and a model (Model) describe their waits when they are
// asked. Threads: the PE's.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/pup.h"

namespace weft::runtime {

// Something that waits, or that is waited for. The same on all PEs.
struct Party {
  // The number of a collection, or one of the following; kNobody if it is not known.
  std::uint64_t space = kNobody;
  std::uint64_t number = 0;  // of the element, the rank, the PE

  static constexpr std::uint64_t kNobody = 0;
  static constexpr std::uint64_t kMains = ~std::uint64_t{0};  // the main coroutine of a PE
  static constexpr std::uint64_t kRanks = kMains - 1;       // ranks of MPI, by their number in MPI_COMM_WORLD
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};  // as the number: all elements of a collection

  auto operator<=>(const Party&) const = default;
};

struct NamedParty {
  Party party;
  std::string name;  // "Cell[3]", "rank 2"
  void pup(Pup& p) { p | party.space | party.number | name; }
};

struct Wait {
  NamedParty who = {};
  std::string where = {};  // what of the party waits: "Cell[3].exchange (app.py:17)"; empty: the party itself
  std::string what = {};   // "recv of 32 bytes from Cell[4], channel id 0"; empty if it is not known
  std::string guess =
      {};  // what the report says if `what` is empty, and no other wait of the party tells more
  std::vector<NamedParty> on = {};  // the parties that can end it; empty if none is known
  void pup(Pup& p) { p | who | where | what | guess | on; }
};

// How many reductions, or other calls that all elements make, elements of one collection on a PE have contributed to.
struct ContributionCount {
  NamedParty collection;  // its name may be that of a section
  std::string what = "reduction";
  std::uint64_t scope = 0;  // the same for all counts that are compared: 0, or the number of a section
  std::uint64_t reductions = 0;
  std::uint64_t num_elements = 0;
  std::vector<NamedParty> elements;  // the first ones
  static constexpr std::size_t kMostNamed = 4;
  void pup(Pup& p) { p | collection | what | scope | reductions | num_elements | elements; }
};

// How many messages one end of a stream has sent, or has asked for. The report compares the two ends.
struct StreamCount {
  NamedParty from;
  NamedParty to;
  std::uint64_t id = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  void pup(Pup& p) { p | from | to | id | sent | received; }
};

class WaitList {
 public:
  // More are counted alone.
  static constexpr std::size_t kMost = 1000;

  void add(Wait wait) {
    if (waits_.size() < kMost) {
      waits_.push_back(std::move(wait));
    } else {
      ++num_left_out_;
    }
  }
  void add(ContributionCount count) { counts_.push_back(std::move(count)); }
  void add(StreamCount count) {
    if (streams_.size() < kMost) streams_.push_back(std::move(count));
  }
  // A sentence about what no party waits for: messages that nothing takes, threads of the program.
  void add_remark(std::string sentence) {
    if (remarks_.size() < kMost) remarks_.push_back(std::move(sentence));
  }
  // Nothing has happened on the PE for so long; 0: it is at work. So each wait is at least as old.
  void set_idle_s(double idle_s) { idle_s_ = idle_s; }
  const std::vector<Wait>& waits() const { return waits_; }
  const std::vector<StreamCount>& streams() const { return streams_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  double idle_s() const { return idle_s_; }
  const std::vector<ContributionCount>& counts() const { return counts_; }
  std::uint64_t num_left_out() const { return num_left_out_; }

  // A coroutine has told what it waits for at this object. So the object leaves it out. Does not travel.
  void tell(const void* object) { told_.push_back(object); }
  bool is_told(const void* object) const { return std::ranges::find(told_, object) != told_.end(); }

  void pup(Pup& p) { p | waits_ | counts_ | streams_ | remarks_ | num_left_out_ | idle_s_; }

 private:
  std::vector<Wait> waits_;
  std::vector<ContributionCount> counts_;
  std::vector<StreamCount> streams_;
  std::vector<std::string> remarks_;
  std::uint64_t num_left_out_ = 0;
  double idle_s_ = 0;
  std::vector<const void*> told_;
};

}  // namespace weft::runtime
