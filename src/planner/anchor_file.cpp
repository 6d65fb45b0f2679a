// Reads anchors from timings.json and from tables of comma-separated values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "model/base/error.hpp"
#include "model/base/line_reader.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/text.hpp"
#include "model/network/limits.hpp"
#include "model/plan/timings.hpp"
#include "planner/anchors.hpp"

namespace stratplan {
namespace {

const std::vector<std::string> known_columns{
    "network", "batch", "step_seconds", "images_per_s", "precision", "software", "input_size"};
const std::map<std::string, Math> precisions{{"fp32", Math::Fp32},
                                             {"tf32", Math::Tf32},
                                             {"fp16", Math::Fp16},
                                             {"amp", Math::Fp16},
                                             {"bf16", Math::Bf16}};

class TableReader {
 public:
  explicit TableReader(const std::string& file) : lines_(file) {}

  std::vector<Anchor> read() {
    std::vector<Anchor> anchors;
    while (lines_.next()) {
      if (lines_.line().empty() || lines_.line()[0] == '#') continue;
      fields_ = comma_separated(lines_.line());
      if (columns_.empty())
        read_columns();
      else
        anchors.push_back(anchor());
    }
    if (anchors.empty()) fail("expected at least one row below the names of the columns");
    return anchors;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { lines_.fail(reason); }

  void read_columns() {
    columns_ = fields_;
    for (const std::string& column : columns_)
      if (std::ranges::find(known_columns, column) == known_columns.end())
        fail(fmt::format("unknown column \"{}\"{}; expected some of {}", shown(column),
                         suggestion(column, known_columns), fmt::join(known_columns, ", ")));
    for (const char* column : {"network", "batch"})
      if (!has(column)) fail(fmt::format("expected a column \"{}\"", column));
    if (has("step_seconds") == has("images_per_s"))
      fail("expected one of the columns \"step_seconds\" and \"images_per_s\"");
  }

  bool has(const std::string& column) const {
    return std::ranges::find(columns_, column) != columns_.end();
  }
  std::string text(const std::string& column) const {
    const auto place = std::ranges::find(columns_, column);
    return place == columns_.end() ? std::string()
                                   : fields_[static_cast<std::size_t>(place - columns_.begin())];
  }
  double number(const std::string& column, double least, double most) const {
    return lines_.number(column, text(column), least, most);
  }

  Anchor anchor() const {
    if (fields_.size() != columns_.size())
      fail(fmt::format("expected {} fields, found {}", columns_.size(), fields_.size()));
    Anchor anchor{.place = lines_.place(), .network = text("network")};
    const double batch = number("batch", 1, static_cast<double>(largest_extent));
    anchor.batch = static_cast<std::int64_t>(batch);
    if (static_cast<double>(anchor.batch) != batch)
      fail(fmt::format("batch: expected a whole number, found \"{}\"", text("batch")));
    anchor.step = {has("step_seconds") ? number("step_seconds", 1e-9, 1e6)
                                       : batch / number("images_per_s", 1e-6, 1e12)};
    if (const std::string precision = text("precision"); !precision.empty()) {
      const auto found = precisions.find(precision);
      if (found == precisions.end())
        fail(fmt::format("precision: expected fp32, tf32, fp16, amp or bf16, found \"{}\"",
                         shown(precision)));
      anchor.math = found->second;
    }
    if (const std::string software = text("software"); !software.empty())
      anchor.software = software;
    if (const std::string size = text("input_size"); !size.empty()) {
      const auto extents = extents_of(size);
      if (!extents)
        fail(
            fmt::format("input_size: expected extents such as 224x224, found \"{}\"", shown(size)));
      anchor.input_size = *extents;
    }
    return anchor;
  }

  LineReader lines_;
  std::vector<std::string> columns_, fields_;
};

Anchor anchor_of(const Timings& timings, const std::string& file) {
  if (timings.ranks != 1)
    throw InputError(file, "/ranks",
                     fmt::format("expected a run on 1 rank, found {}", timings.ranks));
  return {.place = file,
          .network = timings.network_source,
          .batch = timings.batch,
          .math = timings.activations == DataType::F16    ? Math::Fp16
                  : timings.activations == DataType::BF16 ? Math::Bf16
                                                          : Math::Fp32,
          .step = timings.timing.median(),
          .fingerprint = timings.network_fingerprint};
}

}  // namespace

std::vector<Anchor> read_anchors(const std::string& file) {
  if (file.ends_with(".json")) return {anchor_of(read_timings(file), file)};
  return TableReader(file).read();
}

}  // namespace stratplan
