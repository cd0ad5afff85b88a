#include "balance/strategies/pe_queue.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace weft::balance {

std::vector<MovableObject> movable_by_load(const Snapshot& snapshot) {
  std::vector<MovableObject> movable;
  movable.reserve(snapshot.objects.size());
  for (std::size_t i = 0; i < snapshot.objects.size(); ++i) {
    const ObjectLoad& object = snapshot.objects[i];
    if (object.can_move) movable.push_back({object.load_s, static_cast<std::uint32_t>(i)});
  }
  std::sort(movable.begin(), movable.end(), [](const MovableObject& a, const MovableObject& b) {
    return a.load_s != b.load_s ? a.load_s > b.load_s : a.object < b.object;
  });
  return movable;
}

std::vector<double> fixed_times_s(const Snapshot& snapshot) {
  std::vector<double> times = snapshot.background_load_s;
  for (const ObjectLoad& object : snapshot.objects) {
    if (!object.can_move)
      times[static_cast<std::size_t>(object.pe)] += object.load_s / snapshot.speed(object.pe);
  }
  return times;
}

PeQueue::PeQueue(const Snapshot& snapshot, std::vector<double> times_s) : times_s_(std::move(times_s)) {
  std::map<double, Heap, std::greater<>> by_speed;
  for (int pe = 0; pe < snapshot.num_pes; ++pe) {
    const double speed = snapshot.speed(pe);
    seconds_per_load_.push_back(1 / speed);
    by_speed[speed].push_back({times_s_[static_cast<std::size_t>(pe)], pe});
  }
  for (auto& [speed, heap] : by_speed) {
    // A sorted sequence is a heap.
    std::sort(heap.begin(), heap.end());
    heaps_.push_back(std::move(heap));
  }
}

int PeQueue::earliest(double load_s) {
  int best = -1;
  double best_s = 0;
  for (Heap& heap : heaps_) {
    bring_up_to_date(heap);
    const int pe = heap.front().pe;
    const double time_s = finish_s(pe, load_s);
    if (best >= 0 && time_s >= best_s) continue;
    best = pe;
    best_s = time_s;
  }
  return best;
}

void PeQueue::bring_up_to_date(Heap& heap) {
  while (true) {
    QueuedPe entry = heap.front();
    const double time_s = times_s_[static_cast<std::size_t>(entry.pe)];
    if (entry.time_s == time_s) return;
    entry.time_s = time_s;
    std::size_t hole = 0;
    for (std::size_t child = 1; child < heap.size(); child = 2 * hole + 1) {
      if (child + 1 < heap.size() && heap[child + 1] < heap[child]) ++child;
      if (!(heap[child] < entry)) break;
      heap[hole] = heap[child];
      hole = child;
    }
    heap[hole] = entry;
  }
}

}  // namespace weft::balance
