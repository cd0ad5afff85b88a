#include "options.h"

#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace heat_conduction {
namespace {

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

int positive(const std::string& option, std::string_view text) {
  int number = 0;
  if (!parse(text, number) || number < 1) {
    throw UserError(option + " must be a whole number of at least 1, not '" + std::string(text) + "'");
  }
  return number;
}

void set(Options& options, const std::string& option, std::string_view value) {
  if (option == "--size") {
    options.size = positive(option, value);
  } else if (option == "--odf") {
    options.odf = positive(option, value);
  } else if (option == "--check-every") {
    options.check_every = positive(option, value);
  } else if (option == "--until") {
    if (!parse(value, options.until) || !(options.until > 0.0 && options.until < 10.0)) {
      throw UserError("--until must be above 0 and below 10");
    }
  } else {
    throw UserError("unknown option '" + option + "'");
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string option = words[i];
    if (option == "--verify") {
      options.verify = true;
    } else if (option == "--help" || option == "-h") {
      options.help = true;
    } else if (i + 1 == words.size()) {
      throw UserError(option.starts_with("--") ? option + " is unknown or needs a value"
                                               : "unknown word '" + option + "'");
    } else {
      set(options, option, words[++i]);
    }
  }
  return options;
}

}  // namespace heat_conduction
