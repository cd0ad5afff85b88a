// Numbers for things that the compiler makes: entry methods, chare types, reducers.
//
// Each is registered during static initialisation, under its mangled-like unique name, by the template that
// it is an instance of; so nothing has to be declared twice and no code is generated. Numbers follow the
// sorted names: every PE runs the same program and therefore agrees, which Job checks at
// start: see registry_fact().
//
// Threads: registration and numbering happen on one thread, before the first runtime runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::runtime {

// Info has `std::string_view name` and `std::uint32_t id`, and lives as long as the program.
template <class Info>
class Registry {
 public:
  static bool add(Info* info) {
    num_numbered_ = 0;
    list().push_back(info);
    return true;
  }

  // Null when no such number was given: bytes from a peer may hold anything.
  static const Info* find(std::uint32_t id) {
    if (id < num_numbered_) [[likely]]
      return numbered_[id];
    const auto& infos = all();
    return id < infos.size() ? infos[id] : nullptr;
  }

  static const std::vector<Info*>& all() {
    if (num_numbered_ != list().size()) number();
    return list();
  }

 private:
  static std::vector<Info*>& list() {
    static std::vector<Info*> infos;
    return infos;
  }
  static void number() {
    std::stable_sort(list().begin(), list().end(), [](Info* a, Info* b) { return a->name < b->name; });
    for (std::uint32_t i = 0; i < list().size(); ++i) list()[i]->id = i;
    numbered_ = list().data();
    num_numbered_ = list().size();
  }

  // The contents of list() if they are numbered; empty after add(). find() runs for each message. It reads these,
  // because each call of list() tests whether the vector has been constructed.
  static inline Info* const* numbered_ = nullptr;
  static inline std::size_t num_numbered_ = 0;
};

// FNV-1a, for comparing programs.
inline std::uint64_t fingerprint(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325) {
  for (char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return seed;
}

// How many of these there are and a hash of their names, for Model::fingerprint().
template <class Info>
std::pair<std::string, std::string> registry_fact(std::string name) {
  std::uint64_t hash = fingerprint("");
  for (const Info* info : Registry<Info>::all()) hash = fingerprint(info->name, fingerprint("\n", hash));
  const std::size_t count = Registry<Info>::all().size();
  return {std::move(name), std::to_string(count) + " (hash " + std::to_string(hash) + ")"};
}

// "&Ring::token" for a template parameter, as the compiler writes it in the signature of a function template.
constexpr std::string_view template_argument_name(std::string_view pretty_function) {
  std::size_t begin = pretty_function.find("= ");
  if (begin == std::string_view::npos) return pretty_function;
  begin += 2;
  std::size_t end = pretty_function.find_first_of(";]", begin);
  return pretty_function.substr(begin, end - begin);
}

template <class T>
constexpr std::string_view type_name() {
  return template_argument_name(__PRETTY_FUNCTION__);
}
template <auto Value>
constexpr std::string_view value_name() {
  return template_argument_name(__PRETTY_FUNCTION__);
}
// type_name() as a constant, which is found when the program is compiled.
template <class T>
inline constexpr std::string_view kTypeName = type_name<T>();
template <auto Value>
inline constexpr std::string_view kValueName = value_name<Value>();

}  // namespace weft::runtime
