#include "runtime/waits/wait_report.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/format.h"

namespace weft::runtime {

namespace {

constexpr std::size_t kMostCauses = 8;
constexpr const char* kReduction = "reduction";  // as ContributionCount::what
constexpr std::size_t kMostLines = 60;
constexpr std::size_t kMostInCycle = 12;
constexpr std::size_t kMostUntaken = 8;  // channels with messages that no receive takes
// A shorter wait is no news.
constexpr double kLeastAgeS = 0.1;

// A wait of which nothing is known.
constexpr const char* kSuspended = "suspended";

struct ListedWait {
  int pe = 0;
  double idle_s = 0;  // of the PE
  Wait wait;
  bool is_of_coroutine = false;
  bool is_guess = false;  // what it says
};

const std::string& place_of(const Wait& wait) { return wait.where.empty() ? wait.who.name : wait.where; }

// What an unknown wait of a party is, if others of it are known: a C++ coroutine does not know what it awaits, and a channel end does
// not know which coroutine waits for it.
void name_unknown(std::vector<ListedWait>& waits) {
  std::map<Party, std::vector<std::size_t>> unknown;
  std::map<Party, std::size_t> num_known;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const Wait& wait = waits[i].wait;
    if (wait.what.empty()) {
      unknown[wait.who.party].push_back(i);
    } else if (wait.where.empty()) {
      ++num_known[wait.who.party];
    }
  }
  std::vector<bool> is_dropped(waits.size());
  for (const auto& [party, places] : unknown) {
    // With fewer known waits, some of the unknown ones are for something else.
    if (party.space == Party::kNobody || num_known[party] < places.size()) continue;
    for (const std::size_t at : places) is_dropped[at] = true;
    if (places.size() != 1) continue;
    for (ListedWait& one : waits) {
      if (one.wait.who.party == party && one.wait.where.empty()) one.wait.where = waits[places[0]].wait.where;
    }
  }
  std::vector<ListedWait> left;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (is_dropped[i]) continue;
    Wait& wait = waits[i].wait;
    waits[i].is_guess = wait.what.empty();
    if (waits[i].is_guess) wait.what = wait.guess.empty() ? kSuspended : wait.guess;
    left.push_back(std::move(waits[i]));
  }
  waits = std::move(left);
}

std::string joined(const std::vector<std::string>& names, std::string_view last = ", ") {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last : ", ";
    text += names[i];
  }
  return text;
}

// The parties and who waits for whom.
class Graph {
 public:
  explicit Graph(const std::vector<ListedWait>& waits) {
    for (const ListedWait& one : waits) {
      Node& node = nodes_[one.wait.who.party];
      node.name = one.wait.who.name;
      node.waits.push_back(&one);
      for (const NamedParty& other : one.wait.on) names_.emplace(other.party, other.name);
    }
  }

  void add_cycles(std::vector<std::string>& causes) {
    for (const auto& [start, node] : nodes_) {
      if (start.space != Party::kNobody && state_[start] == State::kNew) visit(start, causes);
    }
  }

  void add_missing(std::vector<std::string>& causes) const {
    std::map<Party, std::vector<std::string>> waiting;
    for (const auto& [party, node] : nodes_) {
      for (const ListedWait* const one : node.waits) {
        for (const NamedParty& other : one->wait.on) {
          if (!is_waiting(other.party)) waiting[other.party].push_back(node.name);
        }
      }
    }
    for (auto& [party, names] : waiting) {
      std::ranges::sort(names);
      const auto repeated = std::ranges::unique(names);
      names.erase(repeated.begin(), repeated.end());
      const std::size_t count = names.size();
      if (count > ContributionCount::kMostNamed) {
        names.resize(ContributionCount::kMostNamed);
        names.push_back(base::format("{} more", count - ContributionCount::kMostNamed));
      }
      causes.push_back(base::format("{} waits for nothing, and {} wait{} for it", names_.at(party),
                                    joined(names, " and "), count == 1 ? "s" : ""));
    }
  }

  // Waits for which no party is known. A coroutine of which little is known may wait for another one of its party.
  void add_open(std::vector<std::string>& causes) const {
    for (const auto& [party, node] : nodes_) {
      for (const ListedWait* const one : node.waits) {
        if (!one->wait.on.empty() || (one->is_guess && has_known_coroutine(node))) continue;
        if (one->wait.what != kSuspended)
          causes.push_back(base::format("{}: {}", place_of(one->wait), one->wait.what));
      }
    }
  }

 private:
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  struct Node {
    std::string name;
    std::vector<const ListedWait*> waits;
  };

  bool is_waiting(const Party& party) const {
    if (party.number != Party::kAll) return nodes_.contains(party);
    const auto first = nodes_.lower_bound({party.space, 0});
    return first != nodes_.end() && first->first.space == party.space;
  }

  // Depth first. Not recursive, because a chain of waits may be long.
  void visit(const Party& start, std::vector<std::string>& causes) {
    std::vector<std::vector<Party>> left;  // beside each party of the path: those that it waits for
    const auto enter = [&](const Party& party) {
      state_[party] = State::kOpen;
      path_.push_back(party);
      left.push_back(awaited_by(party));
    };
    enter(start);
    while (!path_.empty()) {
      if (left.back().empty()) {
        state_[path_.back()] = State::kDone;
        path_.pop_back();
        left.pop_back();
        continue;
      }
      const Party next = left.back().back();
      left.back().pop_back();
      if (state_[next] == State::kOpen) add_cycle(next, causes);
      if (state_[next] == State::kNew) enter(next);
    }
  }

  std::vector<Party> awaited_by(const Party& party) const {
    std::vector<Party> found;
    for (const ListedWait* const one : nodes_.at(party).waits) {
      for (const NamedParty& other : one->wait.on) {
        if (nodes_.contains(other.party)) found.push_back(other.party);
      }
    }
    return found;
  }

  static bool has_known_coroutine(const Node& node) {
    return std::ranges::any_of(node.waits,
                               [](const ListedWait* one) { return one->is_of_coroutine && !one->is_guess; });
  }

  void add_cycle(const Party& first, std::vector<std::string>& causes) {
    const auto begin = std::ranges::find(path_, first);
    const auto size = static_cast<std::size_t>(path_.end() - begin);
    if (!in_cycle_.insert({first, path_.back()}).second) return;
    if (size == 1) {
      causes.push_back(base::format("{} waits for itself", nodes_.at(first).name));
      return;
    }
    std::vector<std::string> steps;
    for (std::size_t i = 0; i < std::min(size, kMostInCycle); ++i) {
      const Party& from = begin[static_cast<std::ptrdiff_t>(i)];
      const Party& to = begin[static_cast<std::ptrdiff_t>((i + 1) % size)];
      steps.push_back(
          base::format("{}{} for {}", nodes_.at(from).name, i == 0 ? " waits" : "", nodes_.at(to).name));
    }
    if (size > kMostInCycle) steps.push_back(base::format("{} more", size - kMostInCycle));
    causes.push_back(joined(steps, ", and "));
  }

  std::map<Party, Node> nodes_;
  std::map<Party, std::string> names_;
  std::map<Party, State> state_;
  std::vector<Party> path_;
  std::set<std::pair<Party, Party>> in_cycle_;
};

// --- Reductions

// Elements that have contributed to fewer reductions of their collection than others.
struct Lack {
  std::string what;
  std::string collection;
  std::vector<NamedParty> elements;  // the first ones
  std::uint64_t num_elements = 0;
};
// By what is counted, the collection and a scope, and the number of the reduction.
using Counted = std::tuple<std::string, Party, std::uint64_t>;
using Lacks = std::map<std::pair<Counted, std::uint64_t>, Lack>;

Counted counted_of(const ContributionCount& count) {
  return {count.what, count.collection.party, count.scope};
}

Lacks find_lacks(const std::vector<WaitsOfPe>& pes) {
  std::map<Counted, std::uint64_t> most;
  for (const WaitsOfPe& one : pes) {
    for (const ContributionCount& count : one.list.counts()) {
      std::uint64_t& reductions = most[counted_of(count)];
      reductions = std::max(reductions, count.reductions);
    }
  }
  Lacks lacks;
  for (const WaitsOfPe& one : pes) {
    for (const ContributionCount& count : one.list.counts()) {
      if (count.reductions == most[counted_of(count)]) continue;
      Lack& lack = lacks[{counted_of(count), count.reductions}];
      lack.what = count.what;
      lack.collection = count.collection.name;
      lack.num_elements += count.num_elements;
      lack.elements.insert(lack.elements.end(), count.elements.begin(), count.elements.end());
    }
  }
  return lacks;
}

// A wait for all elements of a collection is one for those that a reduction lacks.
void resolve(std::vector<ListedWait>& waits, const Lacks& lacks) {
  for (ListedWait& one : waits) {
    std::vector<NamedParty> found;
    for (const NamedParty& other : one.wait.on) {
      if (other.party.number != Party::kAll) continue;
      for (const auto& [key, lack] : lacks) {
        if (std::get<Party>(key.first).space == other.party.space && std::get<0>(key.first) == kReduction &&
            std::get<2>(key.first) == 0)
          found.insert(found.end(), lack.elements.begin(), lack.elements.end());
      }
    }
    one.wait.on.insert(one.wait.on.end(), found.begin(), found.end());
  }
}

void add_lacks(const Lacks& lacks, std::vector<std::string>& causes) {
  for (const auto& [key, lack] : lacks) {
    std::vector<std::string> names;
    for (const NamedParty& element : lack.elements) {
      if (names.size() < ContributionCount::kMostNamed) names.push_back(element.name);
    }
    if (lack.num_elements > names.size())
      names.push_back(base::format("{} more elements", lack.num_elements - names.size()));
    causes.push_back(
        base::format("{} {} of {} lacks {}", lack.what, key.second, lack.collection, joined(names, " and ")));
  }
}

// --- The table

std::string without_digits(std::string_view text) {
  std::string plain;
  bool was_digit = false;
  for (const char one : text) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(one)) != 0;
    if (!is_digit) plain += one;
    if (is_digit && !was_digit) plain += '#';
    was_digit = is_digit;
  }
  return plain;
}

struct Line {
  std::string text;
  std::set<int> pes;
  std::uint64_t count = 0;
  double idle_s = 0;  // the shortest one of the PEs
};

std::vector<Line> lines_of(const std::vector<ListedWait>& waits) {
  std::vector<Line> lines;
  std::map<std::string, std::size_t> known;
  for (const ListedWait& one : waits) {
    const std::string text = base::format("{}: {}", place_of(one.wait), one.wait.what);
    const auto [found, is_new] = known.try_emplace(without_digits(text), lines.size());
    if (is_new) lines.push_back({text, {}, 0, one.idle_s});
    Line& line = lines[found->second];
    line.idle_s = std::min(line.idle_s, one.idle_s);
    line.pes.insert(one.pe);
    ++line.count;
  }
  return lines;
}

std::string text_of(const Line& line) {
  std::vector<std::string> numbers;
  for (const int pe : line.pes) {
    if (numbers.size() == ContributionCount::kMostNamed) {
      numbers.push_back(base::format("{} more", line.pes.size() - numbers.size()));
      break;
    }
    numbers.push_back(base::format("{}", pe));
  }
  const std::string alike =
      line.count == 1 ? std::string() : base::format(", and {} like it", line.count - 1);
  const std::string age =
      line.idle_s < kLeastAgeS ? std::string() : base::format(", for {:.1f} s or longer", line.idle_s);
  return base::format("    PE {}: {}{}{}\n", joined(numbers), line.text, alike, age);
}

// Messages that no receive has been made for, where the counts of both ends are known.
std::string untaken(const std::vector<WaitsOfPe>& pes) {
  struct Stream {
    const StreamCount* names = nullptr;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  std::map<std::tuple<Party, Party, std::uint64_t>, Stream> streams;
  for (const WaitsOfPe& one : pes) {
    if (!one.has_answered || one.list.streams().size() >= WaitList::kMost)
      return {};  // counts may be missing
    for (const StreamCount& count : one.list.streams()) {
      Stream& stream = streams[{count.from.party, count.to.party, count.id}];
      stream.names = &count;
      stream.sent += count.sent;
      stream.received += count.received;
    }
  }
  std::string text;
  std::size_t num_lines = 0;
  for (const auto& [key, stream] : streams) {
    if (stream.sent <= stream.received || ++num_lines > kMostUntaken) continue;
    const std::uint64_t count = stream.sent - stream.received;
    text += base::format("    {} message{} from {} to {}, channel id {}\n", count, count == 1 ? "" : "s",
                         stream.names->from.name, stream.names->to.name, stream.names->id);
  }
  if (num_lines > kMostUntaken)
    text += base::format("    and of {} more channels\n", num_lines - kMostUntaken);
  return text.empty() ? text : "  messages that no recv has taken:\n" + text;
}

}  // namespace

std::string wait_report(const std::vector<WaitsOfPe>& pes, bool hangs) {
  std::vector<ListedWait> waits;
  std::uint64_t num_left_out = 0;
  for (const WaitsOfPe& one : pes) {
    for (const Wait& wait : one.list.waits())
      waits.push_back(
          {.pe = one.pe, .idle_s = one.list.idle_s(), .wait = wait, .is_of_coroutine = !wait.where.empty()});
    num_left_out += one.list.num_left_out();
  }
  std::ranges::stable_sort(waits, [](const ListedWait& one, const ListedWait& other) {
    return std::pair(one.pe, one.wait.who.party) < std::pair(other.pe, other.wait.who.party);
  });
  name_unknown(waits);
  const Lacks lacks = find_lacks(pes);
  resolve(waits, lacks);

  std::vector<std::string> causes;
  Graph graph(waits);
  graph.add_cycles(causes);
  if (hangs) {
    add_lacks(lacks, causes);
    graph.add_missing(causes);
    graph.add_open(causes);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(causes.size(), kMostCauses); ++i)
    text += base::format("  cause: {}\n", causes[i]);
  if (causes.size() > kMostCauses)
    text += base::format("  and {} more causes\n", causes.size() - kMostCauses);

  const std::vector<Line> lines = lines_of(waits);
  text += lines.empty() ? "  nothing is known to wait\n" : "  what waits:\n";
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) text += text_of(lines[i]);
  if (lines.size() > kMostLines)
    text += base::format("    and {} more kinds of waits\n", lines.size() - kMostLines);
  if (num_left_out > 0) text += base::format("    and {} more waits\n", num_left_out);

  text += untaken(pes);
  for (const WaitsOfPe& one : pes) {
    for (const std::string& remark : one.list.remarks())
      text += base::format("  PE {}: {}\n", one.pe, remark);
  }

  std::vector<std::string> silent;
  for (const WaitsOfPe& one : pes) {
    if (!one.has_answered) silent.push_back(base::format("{}", one.pe));
  }
  if (!silent.empty())
    text += base::format("  no answer from PE {}: the program computes there, or is in a call of C\n",
                         joined(silent));
  return text;
}

}  // namespace weft::runtime
