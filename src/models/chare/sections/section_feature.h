// Reductions over sections as a feature of elements: how many an element has contributed to moves with it.
// Threads: one PE's thread.
#pragma once

#include <string>
#include <vector>

#include "weft/chare/sections.h"

#include "models/chare/elements/feature.h"

namespace weft::chare {

class SectionFeature final : public Feature {
 public:
  SectionFeature(Sections& sections, FeatureTable& table) : Feature(table), sections_(sections) {
    sections.set_handlers(table);
  }

  void pack(const ChareBase& chare, Pup& p) const override {
    std::vector<SectionCount> counts = sections_.counts_of(chare);
    p | counts;
  }
  void left(Collection& /*from*/, const ChareBase& chare) override { sections_.left(chare); }
  bool arrived(ChareBase& chare, Pup& p, int /*from_pe*/) override {
    std::vector<SectionCount> counts;
    p | counts;
    sections_.arrived(chare, counts);
    return true;
  }
  std::vector<runtime::MessagePtr> collection_ended(Collection& target, FeatureStates& /*states*/,
                                                    const std::string& why) override {
    sections_.end(target, why);
    return {};
  }

 private:
  Sections& sections_;
};

}  // namespace weft::chare
