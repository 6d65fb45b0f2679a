#include "model/base/line_reader.hpp"

#include <fmt/format.h>

#include <charconv>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"

namespace stratplan {

std::string shown(std::string text) {
  constexpr std::size_t most = 40;
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

LineReader::LineReader(const std::string& file) : LineReader(file, read_text(file)) {}

LineReader::LineReader(const std::string& file, const std::string& text)
    : file_(file), text_(text) {}

bool LineReader::next() {
  words_.clear();
  if (!std::getline(text_, line_)) return false;
  ++number_;
  if (number_ == 1 && line_.starts_with("\xEF\xBB\xBF")) line_.erase(0, 3);
  if (line_.ends_with('\r')) line_.pop_back();
  std::istringstream parts(line_);
  for (std::string word; parts >> word;) words_.push_back(word);
  return true;
}

std::string LineReader::place() const { return fmt::format("{}:{}", file_, number_); }

void LineReader::fail(const std::string& reason) const { throw InputError(place(), "", reason); }

namespace {

/// Returns whether the whole field is a number, which `value` then is.
template <class Number>
bool holds(const std::string& field, Number& value) {
  const char* const last = field.data() + field.size();
  const auto [end, error] = std::from_chars(field.data(), last, value);
  return error == std::errc{} && end == last;
}

}  // namespace

double LineReader::number(const std::string& name, const std::string& field, double least,
                          double most) const {
  double value = 0;
  if (!holds(field, value) || !(value >= least && value <= most))
    fail(fmt::format("{}: expected a number from {} to {}, found \"{}\"", name, least, most,
                     shown(field)));
  return value;
}

std::int64_t LineReader::whole(const std::string& name, const std::string& field,
                               std::int64_t least, std::int64_t most) const {
  std::int64_t value = 0;
  if (!holds(field, value) || value < least || value > most)
    fail(fmt::format("{}: expected a whole number from {} to {}, found \"{}\"", name, least, most,
                     shown(field)));
  return value;
}

}  // namespace stratplan
