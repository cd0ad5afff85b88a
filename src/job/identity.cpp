#include "job/identity.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/format.h"

namespace weft::job {

namespace {

constexpr std::string_view kHeader = "weft-job\n";
// Limits for the text of a peer: the facts that are read, and the characters that are shown of a name or a value.
constexpr std::size_t kMaxFacts = 200;
constexpr std::size_t kMaxShown = 200;

// Facts are printable.
constexpr char kBeforeNote = '\0';

// The part of a packed identity before its note.
std::span<const std::byte> facts_of(std::span<const std::byte> packed) {
  const auto end = std::ranges::find(packed, std::byte{kBeforeNote});
  return packed.first(static_cast<std::size_t>(end - packed.begin()));
}

using Facts = std::vector<std::pair<std::string, std::string>>;

// Only printable ASCII: it travels in a line and is shown to people.
std::string printable(std::string_view text) {
  std::string result(text.substr(0, kMaxShown));
  std::ranges::replace_if(result, [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

std::optional<Facts> parse(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kHeader)) return std::nullopt;
  text.remove_prefix(kHeader.size());
  Facts facts;
  while (!text.empty() && facts.size() < kMaxFacts) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    facts.emplace_back(printable(line.substr(0, equals)), printable(line.substr(equals + 1)));
  }
  return facts;
}

const std::string* find(const Facts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &Facts::value_type::first);
  return found == facts.end() ? nullptr : &found->second;
}

std::string_view value_or_nothing(const std::string* value) {
  return value == nullptr ? std::string_view("nothing") : std::string_view(*value);
}

}  // namespace

Identity Identity::of_weft() {
  Identity identity;
  identity.add("Weft's version", WEFT_VERSION);
  identity.add("Weft's wire revision", std::to_string(kWireRevision));
  identity.add("word size in bits", std::to_string(8 * sizeof(void*)));
  identity.add("byte order", std::endian::native == std::endian::little ? "little endian" : "big endian");
  return identity;
}

void Identity::add(std::string_view name, std::string_view value) {
  std::string cleaned = printable(name);
  std::ranges::replace(cleaned, '=', ':');
  facts_.emplace_back(std::move(cleaned), printable(value));
}

std::vector<std::byte> Identity::pack(std::string_view note) const {
  std::string text(kHeader);
  for (const auto& [name, value] : facts_) text += base::format("{}={}\n", name, value);
  if (!note.empty()) text.append(1, kBeforeNote).append(note);
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

std::string_view Identity::note_of(std::span<const std::byte> theirs) {
  const auto facts = facts_of(theirs);
  if (facts.size() == theirs.size()) return {};
  const auto note = theirs.subspan(facts.size() + 1);
  return {reinterpret_cast<const char*>(note.data()), std::min(note.size(), kMaxNoteBytes)};
}

std::string Identity::difference(int my_pe, std::span<const std::byte> theirs, int their_pe) const {
  theirs = facts_of(theirs);
  if (std::ranges::equal(theirs, pack())) return {};
  const std::optional<Facts> their_facts = parse(theirs);
  if (!their_facts) {
    return base::format(
        "PE {} runs another version of Weft than PE {}, which has {}: start the same build on every PE",
        their_pe, my_pe, facts_.empty() ? "no version" : facts_.front().second);
  }
  std::string differing;
  const auto compare = [&](const std::string& name) {
    const std::string* const mine = find(facts_, name);
    const std::string* const others = find(*their_facts, name);
    if (mine != nullptr && others != nullptr && *mine == *others) return;
    differing += base::format("{}{} ({} and {})", differing.empty() ? "" : ", ", name, value_or_nothing(mine),
                              value_or_nothing(others));
  };
  for (const auto& [name, value] : facts_) compare(name);
  for (const auto& [name, value] : *their_facts) {
    if (find(facts_, name) == nullptr) compare(name);
  }
  if (differing.empty()) differing = "the order of the facts that they exchange";
  return base::format(
      "PE {} and PE {} cannot be in one job: they differ in {}; start the same build on every PE", my_pe,
      their_pe, differing);
}

}  // namespace weft::job
