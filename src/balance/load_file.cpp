#include "balance/load_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "base/format.h"

namespace weft::balance {
namespace {

using base::Status;
using base::StatusCode;

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kPeForm = "'pe BACKGROUND_S SPEED'";
constexpr std::string_view kObjectForm = "'object COLLECTION INDEX PE LOAD_S SIZE_BYTES moves|stays'";
constexpr std::string_view kEdgeForm = "'edge FROM TO MESSAGES BYTES'";
// More words than any form has, so that one too many is seen.
constexpr std::size_t kMaxWords = 8;
// The shortest lines, with their line breaks: "pe 0 1", "object 0 0 0 0 0 moves", "edge 0 0 0 0".
constexpr std::size_t kMinPeBytes = 7;
constexpr std::size_t kMinObjectBytes = 23;
constexpr std::size_t kMinEdgeBytes = 13;

// The start of a text from outside, fit for a terminal.
std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string result = "'";
  for (const char c : text.substr(0, kShown)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > kShown ? "'..." : "'");
}

template <class Number>
bool read_number(std::string_view word, Number& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

// The lines that mean something, one after the other, each cut into words.
class Lines {
 public:
  Lines(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  // False at the end of the text.
  bool next() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      split();
      if (num_words_ > 0 && words_[0].front() != '#') return true;
    }
    ++number_;
    line_ = {};
    num_words_ = 0;
    ended_ = true;
    return false;
  }

  std::span<const std::string_view> words() const { return {words_.data(), num_words_}; }

  // Whether the line is `word` and then `count` more words.
  bool is(std::string_view word, std::size_t count) const {
    return num_words_ == count + 1 && words_[0] == word;
  }

  Status expected(std::string_view what) const {
    return {StatusCode::kCorrupt, base::format("{}:{}: expected {}, found {}", name_, number_, what,
                                               ended_ ? "the end of the file" : quoted(line_))};
  }

  // A number of the line is out of its range.
  Status wrong(const Status& status) const {
    return {StatusCode::kCorrupt, base::format("{}:{}: {}", name_, number_, status.message())};
  }

 private:
  void split() {
    num_words_ = 0;
    for (std::size_t begin = line_.find_first_not_of(kBlanks);
         begin != line_.npos && num_words_ < kMaxWords;) {
      const std::size_t end = std::min(line_.find_first_of(kBlanks, begin), line_.size());
      words_[num_words_++] = line_.substr(begin, end - begin);
      begin = line_.find_first_not_of(kBlanks, end);
    }
  }

  std::string_view rest_;
  std::string_view name_;
  std::string_view line_;
  std::array<std::string_view, kMaxWords> words_;
  std::size_t num_words_ = 0;
  std::size_t number_ = 0;
  bool ended_ = false;
};

struct Counts {
  std::size_t pes = 0;
  std::size_t objects = 0;
  std::size_t edges = 0;
};

base::Result<Counts> read_head(Lines& lines, std::size_t text_bytes) {
  if (!lines.next() || !lines.is("weft-load", 1)) {
    return lines.expected("'weft-load 1', the first line of a load file");
  }
  if (lines.words()[1] != "1") return lines.expected("version 1, the only one that this Weft reads");
  Counts counts;
  const bool has_counts =
      lines.next() && lines.is("counts", 3) && read_number(lines.words()[1], counts.pes) &&
      read_number(lines.words()[2], counts.objects) && read_number(lines.words()[3], counts.edges);
  if (!has_counts) return lines.expected("'counts PES OBJECTS EDGES'");
  if (counts.pes < 1 || counts.pes > static_cast<std::size_t>(kMaxPes)) {
    return lines.expected(base::format("1 to {} PEs", kMaxPes));
  }
  if (counts.pes > text_bytes / kMinPeBytes || counts.objects > text_bytes / kMinObjectBytes ||
      counts.edges > text_bytes / kMinEdgeBytes) {
    return lines.expected(base::format("counts that fit into a file of {} bytes", text_bytes));
  }
  return counts;
}

Status read_pes(Lines& lines, std::size_t count, Snapshot& snapshot) {
  snapshot.num_pes = static_cast<int>(count);
  snapshot.background_load_s.resize(count);
  snapshot.pe_speed.resize(count);
  for (std::size_t pe = 0; pe < count; ++pe) {
    if (!lines.next() || !lines.is("pe", 2) ||
        !read_number(lines.words()[1], snapshot.background_load_s[pe]) ||
        !read_number(lines.words()[2], snapshot.pe_speed[pe])) {
      return lines.expected(base::format("line {} of {} of the form {}", pe + 1, count, kPeForm));
    }
    if (Status status = check_pe(snapshot, static_cast<int>(pe)); !status.ok()) return lines.wrong(status);
  }
  return {};
}

bool read_object(const Lines& lines, ObjectLoad& object) {
  if (!lines.is("object", 6)) return false;
  const auto words = lines.words();
  object.can_move = words[6] == "moves";
  return read_number(words[1], object.collection) && read_number(words[2], object.index) &&
         read_number(words[3], object.pe) && read_number(words[4], object.load_s) &&
         read_number(words[5], object.size_bytes) && (object.can_move || words[6] == "stays");
}

bool read_edge(const Lines& lines, CommunicationEdge& edge) {
  if (!lines.is("edge", 4)) return false;
  const auto words = lines.words();
  return read_number(words[1], edge.from) && read_number(words[2], edge.to) &&
         read_number(words[3], edge.messages) && read_number(words[4], edge.bytes);
}

Status read_body(Lines& lines, const Counts& counts, Snapshot& snapshot) {
  if (Status status = read_pes(lines, counts.pes, snapshot); !status.ok()) return status;
  snapshot.objects.resize(counts.objects);
  for (std::size_t i = 0; i < counts.objects; ++i) {
    if (!lines.next() || !read_object(lines, snapshot.objects[i])) {
      return lines.expected(base::format("line {} of {} of the form {}", i + 1, counts.objects, kObjectForm));
    }
    if (Status status = check_object(snapshot, snapshot.objects[i]); !status.ok()) return lines.wrong(status);
  }
  snapshot.edges.resize(counts.edges);
  for (std::size_t i = 0; i < counts.edges; ++i) {
    if (!lines.next() || !read_edge(lines, snapshot.edges[i])) {
      return lines.expected(base::format("line {} of {} of the form {}", i + 1, counts.edges, kEdgeForm));
    }
    if (Status status = check_edge(snapshot, snapshot.edges[i]); !status.ok()) return lines.wrong(status);
  }
  if (lines.next()) return lines.expected("the end of the file");
  return {};
}

struct FileCloser {
  void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

Status file_error(StatusCode code, std::string_view what, const std::string& path, int error) {
  return {code, base::format("the load file {} cannot be {}: {}", path, what,
                             std::generic_category().message(error))};
}

}  // namespace

std::string format_loads(const Snapshot& snapshot) {
  std::string text =
      "weft-load 1\n# pe: background load in s, speed\n"
      "# object: collection, index, PE, load in s, size in bytes, moves or stays\n"
      "# edge: from, to, messages, bytes\n";
  text += base::format("counts {} {} {}\n", snapshot.num_pes, snapshot.objects.size(), snapshot.edges.size());
  for (int pe = 0; pe < snapshot.num_pes; ++pe) {
    text += base::format("pe {} {}\n", snapshot.background_load_s[static_cast<std::size_t>(pe)],
                         snapshot.speed(pe));
  }
  for (const ObjectLoad& object : snapshot.objects) {
    text += base::format("object {} {} {} {} {} {}\n", object.collection, object.index, object.pe,
                         object.load_s, object.size_bytes, object.can_move ? "moves" : "stays");
  }
  for (const CommunicationEdge& edge : snapshot.edges) {
    text += base::format("edge {} {} {} {}\n", edge.from, edge.to, edge.messages, edge.bytes);
  }
  return text;
}

base::Result<Snapshot> parse_loads(std::string_view text, std::string_view name) {
  Lines lines(text, name);
  auto counts = read_head(lines, text.size());
  if (!counts.ok()) return counts.status();
  Snapshot snapshot;
  if (Status status = read_body(lines, *counts, snapshot); !status.ok()) return status;
  if (Status status = check(snapshot); !status.ok()) {
    return Status(StatusCode::kCorrupt, base::format("{}: {}", name, status.message()));
  }
  return snapshot;
}

Status write_load_file(const std::string& path, const Snapshot& snapshot) {
  File file(std::fopen(path.c_str(), "w"));
  if (!file) return file_error(StatusCode::kInvalidArgument, "written", path, errno);
  const std::string text = format_loads(snapshot);
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  // Closing writes what is still buffered.
  if (!written || std::fclose(file.release()) != 0) {
    return file_error(StatusCode::kInternal, "written", path, errno);
  }
  return {};
}

base::Result<Snapshot> read_load_file(const std::string& path) {
  File file(std::fopen(path.c_str(), "r"));
  if (!file) return file_error(StatusCode::kNotFound, "read", path, errno);
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (const std::size_t size = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    text.append(chunk.data(), size);
  }
  if (std::ferror(file.get()) != 0) return file_error(StatusCode::kInternal, "read", path, errno);
  return parse_loads(text, path);
}

}  // namespace weft::balance
