// What tests ask of errors: the text of the one that an await or a call throws, and whether a text says something.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "weft/weft.h"

namespace weft::test_support {

// The text of the error that `awaited` gives, or "". `awaited` is a future or a task.
template <class Awaited>
Task<std::string> error_of(Awaited awaited) {
  try {
    co_await std::move(awaited);
  } catch (const base::Error& error) {
    co_return error.what();
  }
  co_return "";
}

// The text of the error that `call()` throws, or "".
template <class Call>
std::string thrown_by(Call call) {
  try {
    call();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

inline ::testing::AssertionResult says(const std::string& text, const std::string& part) {
  const auto result =
      text.find(part) != std::string::npos ? ::testing::AssertionSuccess() : ::testing::AssertionFailure();
  return ::testing::AssertionResult(result) << "'" << text << "' looked for '" << part << "'";
}

}  // namespace weft::test_support
