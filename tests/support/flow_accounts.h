// Whether both ends of each pair of PEs have counted the same in flow control.
#pragma once

#include <gtest/gtest.h>

#include "runtime/message/flow_control.h"
#include "runtime/message/handlers.h"
#include "tests/support/in_process_job.h"

namespace weft::testing {

inline runtime::FlowControl& flow_of(Runtime& runtime) {
  return *static_cast<runtime::FlowControl*>(runtime.handler_context(runtime::kFlowCreditHandler));
}

// Runs the job until what each PE has charged for each PE is what that PE has handled and not reported. A job whose
// accounts differ hangs here.
inline void expect_equal_accounts(InProcessJob& job) {
  const auto are_equal = [&] {
    for (int from = 0; from < job.num_pes(); ++from) {
      for (int to = 0; to < job.num_pes(); ++to) {
        runtime::FlowControl& sender = flow_of(job.runtime(from));
        if (sender.charged_bytes(to) != flow_of(job.runtime(to)).unreported_bytes(from)) return false;
        if (sender.copies_bytes(to) != 0) return false;
      }
    }
    return true;
  };
  EXPECT_EQ(job.run_until(are_equal), "");
  for (int from = 0; from < job.num_pes(); ++from) {
    for (int to = 0; to < job.num_pes(); ++to) {
      EXPECT_EQ(flow_of(job.runtime(from)).charged_bytes(to), flow_of(job.runtime(to)).unreported_bytes(from))
          << "from PE " << from << " to PE " << to;
    }
  }
}

}  // namespace weft::testing
