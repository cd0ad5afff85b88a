#include "weft/pgas/pgas.h"

namespace weft::pgas {

Pgas::Pgas(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : GlobalMemory(runtime, range.first_handler) {}

void Pgas::close() { GlobalMemory::close(); }

std::vector<runtime::ModelOption> Pgas::options() {
  return {{"WEFT_PGAS_MAPPING", "on or off", [this](std::string_view value) {
             set_mapping(value != "off");
             return value == "on" || value == "off";
           }}};
}

}  // namespace weft::pgas
