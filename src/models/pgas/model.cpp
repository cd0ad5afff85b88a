#include "models/pgas/model.h"

namespace weft::pgas {

Pgas::Pgas(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : teams_(runtime, range.first_handler) {}

World& world_of(runtime::Runtime& runtime) { return runtime.model<Pgas>().world(); }

}  // namespace weft::pgas
