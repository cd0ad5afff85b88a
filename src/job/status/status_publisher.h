// Keeps the status page of a PE (status_page.h) up to date.
//
// Threads: the PE's.
#pragma once

#include <memory>
#include <string>

#include "weft/runtime/runtime.h"

#include "base/shared_file.h"
#include "job/status/status_page.h"

namespace weft::job {

class StatusPublisher final : private runtime::TurnMeter::Listener {
 public:
  // Listens to the runtime's meter as long as it lives. `job`: the text that all PEs of the job have, and no other job. Empty if the
  // system refuses the file: then `weft top` says that it does not see this PE.
  static std::unique_ptr<StatusPublisher> make(runtime::Runtime& runtime, const std::string& job);
  ~StatusPublisher() override;
  StatusPublisher(const StatusPublisher&) = delete;
  StatusPublisher& operator=(const StatusPublisher&) = delete;

  const base::SharedFile& file() const { return file_; }
  const StatusPage& page() const { return *page_; }

 private:
  StatusPublisher(runtime::Runtime& runtime, const std::string& job, base::SharedFile file, void* memory);
  void times_changed(const runtime::TurnMeter::Times& times) override;
  void publish(const runtime::TurnMeter::Times& times) override;
  void set_times(const runtime::TurnMeter::Times& times);

  runtime::Runtime& runtime_;
  base::SharedFile file_;
  StatusPage* page_;
};

}  // namespace weft::job
