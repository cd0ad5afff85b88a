// The PGAS model of one PE: global memory (weft/pgas/global_memory.h).
//
//   weft::pgas::Pgas& pgas = runtime.model<weft::pgas::Pgas>();
//
// Threads: the PE's.
#pragma once

#include <string>
#include <vector>

#include "weft/pgas/global_memory.h"
#include "weft/runtime/model.h"
#include "weft/runtime/runtime.h"

namespace weft::pgas {

class Pgas final : public runtime::Model, public GlobalMemory {
 public:
  static constexpr runtime::ModelNeeds kNeeds{
      .name = "pgas", .num_handlers = GlobalMemory::kNumHandlers, .uses_tags = false};

  Pgas(runtime::Runtime& runtime, const runtime::ModelRange& range);

  // --- runtime::Model
  void close() override;
  std::vector<runtime::ModelOption> options() override;
};

}  // namespace weft::pgas
