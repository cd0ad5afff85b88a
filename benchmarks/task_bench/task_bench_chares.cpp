// Task Bench (https://github.com/StanfordLegion/task-bench) on chares: each column of a task graph is a chare of an array.
//
//   weft run -n 2 build/release/benchmarks/task_bench_chares -type stencil_1d -steps 1000 -width 4 -kernel compute_bound -iter 64
//
// The options are those of Task Bench's core library, which checks what each task gets. A graph runs twice, and the second run is timed,
// from the call of all columns to the reduction at their ends: the way of Task Bench's programs for MPI.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "core.h"

namespace {

// Each PE reads the command line before the job starts; constant afterwards.
std::unique_ptr<const App> app;

class Column : public weft::Chare<Column> {
 public:
  explicit Column(std::size_t graph)
      : graph_(app->graphs[graph]),
        here_(index()),
        output_(graph_.output_bytes_per_task),
        scratch_(graph_.scratch_bytes_per_task) {
    if (!scratch_.empty()) TaskGraph::prepare_scratch(scratch_.data(), scratch_.size());
    for (long set = 0; set < graph_.max_dependence_sets(); ++set) {
      needs_.push_back(points_of(graph_.dependencies(set, here_)));
      feeds_.push_back(points_of(graph_.reverse_dependencies(set, here_)));
    }
  }

  // Runs all tasks of the column, and contributes their number to `done`.
  void run(weft::Future<long> done) {
    done_ = std::move(done);
    is_running_ = true;
    advance();
  }

  // The output of the task before at `from`, for the task at `step`. It may come early: columns are not in step.
  void take(long step, long from, std::span<const char> output) {
    store(step, from, output);
    if (is_running_ && step == step_) advance();
  }

 private:
  // Of one task, one behind the other. Used again for later ones.
  struct Inputs {
    long arrived = 0;
    std::vector<char> bytes;
  };

  static std::vector<long> points_of(const std::vector<std::pair<long, long>>& intervals) {
    std::vector<long> points;
    for (const auto& [first, last] : intervals) {
      for (long point = first; point <= last; ++point) points.push_back(point);
    }
    return points;
  }

  bool has_task(long step, long point) const {
    const long offset = graph_.offset_at_timestep(step);
    return step >= 0 && step < graph_.timesteps && offset <= point &&
           point < offset + graph_.width_at_timestep(step);
  }

  Inputs& inputs_of(long step) {
    const auto ahead = static_cast<std::size_t>(step - step_);
    if (inputs_.size() <= ahead) inputs_.resize(ahead + 1);
    return inputs_[ahead];
  }

  const std::vector<long>& needs_of(long step) const {
    return needs_[static_cast<std::size_t>(graph_.dependence_set_at_timestep(step))];
  }

  void store(long step, long from, std::span<const char> output) {
    const std::vector<long>& needs = needs_of(step);
    Inputs& inputs = inputs_of(step);
    inputs.bytes.resize(needs.size() * output_.size());
    const auto place = static_cast<std::size_t>(std::ranges::find(needs, from) - needs.begin());
    if (place == needs.size() || output.size() != output_.size())
      throw std::runtime_error("an input that no task needs");
    std::ranges::copy(output, inputs.bytes.data() + place * output_.size());
    ++inputs.arrived;
  }

  void advance() {
    while (step_ < graph_.timesteps) {
      const auto is_input = [this](long point) { return has_task(step_ - 1, point); };
      const bool is_task = has_task(step_, here_);
      Inputs& inputs = inputs_of(step_);
      if (is_task && inputs.arrived < std::ranges::count_if(needs_of(step_), is_input)) return;
      if (is_task) execute(inputs);
      inputs_.push_back(std::move(inputs_.front()));
      inputs_.back().arrived = 0;
      inputs_.pop_front();
      ++step_;
    }
    step_ = 0;
    is_running_ = false;
    contribute(std::exchange(num_tasks_, 0), weft::Reducer::kSum, weft::target_of(done_));
  }

  void execute(const Inputs& inputs) {
    const std::vector<long>& needs = needs_of(step_);
    pointers_.clear();
    for (std::size_t i = 0; i < needs.size(); ++i) {  // in the order that the core expects
      if (has_task(step_ - 1, needs[i])) pointers_.push_back(inputs.bytes.data() + i * output_.size());
    }
    sizes_.assign(pointers_.size(), output_.size());
    graph_.execute_point(step_, here_, output_.data(), output_.size(), pointers_.data(), sizes_.data(),
                         pointers_.size(), scratch_.data(), scratch_.size());
    ++num_tasks_;
    const long next = step_ + 1;
    if (next == graph_.timesteps) return;
    for (const long point : feeds_[static_cast<std::size_t>(graph_.dependence_set_at_timestep(next))]) {
      if (!has_task(next, point)) continue;
      if (point == here_) {
        store(next, here_, output_);
      } else {
        proxy()[point].send<&Column::take>(next, here_, std::span<const char>(output_));
      }
    }
  }

  const TaskGraph graph_;
  const long here_;
  // The columns whose outputs a task gets, and those that get its own: for each set of dependences.
  std::vector<std::vector<long>> needs_;
  std::vector<std::vector<long>> feeds_;
  long step_ = 0;
  bool is_running_ = false;
  long num_tasks_ = 0;
  std::deque<Inputs> inputs_;  // of step_ and later ones
  std::vector<char> output_;
  std::vector<char> scratch_;
  std::vector<const char*> pointers_;
  std::vector<std::size_t> sizes_;
  weft::Future<long> done_;
};

long tasks_of(const TaskGraph& graph) {
  long count = 0;
  for (long step = 0; step < graph.timesteps; ++step) count += graph.width_at_timestep(step);
  return count;
}

weft::Task<> start(weft::Runtime& runtime) {
  app->display();
  std::vector<weft::Array<Column>> graphs;
  for (std::size_t i = 0; i < app->graphs.size(); ++i) {
    graphs.push_back(weft::Array<Column>::create(runtime, {static_cast<int>(app->graphs[i].max_width)}, i));
    co_await graphs.back().created();
  }
  double elapsed_s = 0;
  for (int round = 0; round < 2; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<weft::Future<long>> done;
    for (const auto& columns : graphs) {
      done.emplace_back(runtime);
      columns.send<&Column::run>(done.back());
    }
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      const long num_tasks = co_await done[i];
      if (num_tasks != tasks_of(app->graphs[i])) throw std::runtime_error("not every task has run once");
    }
    elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  app->report_timing(elapsed_s);
}

}  // namespace

int main(int argc, char** argv) {
  app = std::make_unique<const App>(argc, argv);
  return weft::run(argc, argv, start);
}
