// The settings of a job that are environment variables and no option of one layer below. docs/running.md has the table.
//
// Each function reads its variable when it is called, and throws Error(kInvalidArgument) that names the variable and what to give.
#pragma once

#include <optional>

#include "weft/runtime/hang_settings.h"
#include "weft/runtime/message.h"
#include "weft/runtime/runtime.h"
#include "weft/runtime/watermarks.h"

#include "machine/bootstrap/bootstrap.h"

namespace weft::job {

// Those that the models have named in Model::options().
void set_options(const runtime::Runtime& runtime);

// WEFT_MESSAGING_PATH, for measurements: by itself the runtime takes the faster path for the size.
runtime::MessagingPath messaging_path();

// WEFT_CALL_LIMIT. Without it a share of the host's memory is the limit.
runtime::Watermarks read_watermarks(const machine::Bootstrap& bootstrap);

// WEFT_HANG_REPORT. Nothing if the job does not look for hangs.
std::optional<runtime::HangSettings> hang_settings();

// WEFT_STATS.
bool statistics_wanted();

// WEFT_CHECK. The models read it, too, and refuse other values.
bool checks_wanted();

}  // namespace weft::job
