#include "interop/onnx/parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "interop/onnx/operators/operation.hpp"
#include "model/base/error.hpp"

namespace stratplan::interop {
namespace {

/// The most axes of a tensor as network.json describes it.
constexpr std::size_t most_stored_axes = 8;

/// Whether network.json can say how the file stores the parameter: with the elements in the same
/// order, or as a matrix with rows and columns exchanged.
bool is_describable(const Parameter& parameter) {
  const std::vector<Turn>& turns = parameter.values.turns();
  if (parameter.values.root().extents().size() > most_stored_axes) return false;
  return turns.empty() || (turns.size() == 1 && turns[0].order.size() == 2 &&
                           turns[0].extents == parameter.values.root().extents());
}

bool are_alike(const Parameter& a, const Parameter& b) {
  return a.role == b.role && a.shape == b.shape && a.values.turns() == b.values.turns() &&
         a.channels_last == b.channels_last;
}

/// Returns the weights of a fully connected layer from a matrix that the file stores as (K, F)
/// (`turned`) or (F, K). Reads some rows at a time, so that memory holds the result alone. Returns
/// nothing if the matrix cannot be read in parts.
std::optional<std::vector<float>> read_by_rows(const Parameter& parameter, bool turned) {
  const Constant matrix = parameter.values.root();
  if (!matrix.part(0, 0)) return {};  // before memory is taken for the result
  const std::int64_t rows = matrix.extents()[0], columns = matrix.extents()[1],
                     products = turned ? rows : columns;
  const std::int64_t channels = parameter.channels_last ? parameter.shape[1] : 1,
                     positions = products / channels;
  const auto place = [&](std::int64_t k) { return k % channels * positions + k / channels; };
  constexpr std::int64_t block = 64;  // neighbours in a column lie in different lines of the cache
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (std::int64_t first = 0; first < rows; first += block) {
    const std::int64_t count = std::min(block, rows - first);
    const std::vector<float> part = *matrix.part(first * columns, count * columns);
    for (std::int64_t column = 0; column < columns; ++column)
      for (std::int64_t row = 0; row < count; ++row)
        values[static_cast<std::size_t>(turned ? column * products + place(first + row)
                                               : (first + row) * products + place(column))] =
            part[static_cast<std::size_t>(row * columns + column)];
  }
  return values;
}

/// Returns the values in the order of the parameter's shape.
std::vector<float> values_of(const Parameter& parameter) {
  const Constant& constant = parameter.values;
  const Constant root = constant.root();
  const bool turned = !constant.turns().empty();
  const bool is_stored = constant.origin() != Origin::Computed && !root.integral();
  if (is_stored && !turned && !parameter.channels_last) return root.floats();  // needs no copy
  const Extents& extents = root.extents();
  if (is_stored && extents.size() == 2 && is_describable(parameter) &&
      (!parameter.channels_last || parameter.shape[0] == extents[turned ? 1 : 0]))
    if (auto values = read_by_rows(parameter, turned)) return std::move(*values);
  std::vector<float> from = constant.floats();
  if (!parameter.channels_last) return from;
  const auto filters = static_cast<std::size_t>(parameter.shape[0]),
             channels = static_cast<std::size_t>(parameter.shape[1]);
  const std::size_t positions = from.size() / (filters * channels);
  std::vector<float> values(from.size());
  for (std::size_t f = 0; f < filters; ++f)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t p = 0; p < positions; ++p)
        values[(f * channels + c) * positions + p] = from[(f * positions + p) * channels + c];
  return values;
}

/// Returns the numbers as network.json lists them: one number if all are equal.
Json listed(const std::vector<float>& values) {
  for (const float value : values)
    need(std::isfinite(value), "expected finite numbers in a constant");
  const auto number = [](float value) { return tidy(static_cast<double>(value)); };
  if (std::all_of(values.begin(), values.end(), [&](float each) { return each == values[0]; }) &&
      !values.empty())
    return number(values[0]);
  Json list = Json::array();
  for (const float value : values) list.push_back(number(value));
  return list;
}

}  // namespace

ParameterTable::ParameterTable(const Graph& graph,
                               const std::map<std::string, Constant>& initializers,
                               bool merges_equals)
    : graph_(graph), initializers_(initializers), merges_equals_(merges_equals) {
  std::map<std::size_t, std::vector<Use>> by_root;
  std::vector<std::size_t> order;  // roots as the layers read them
  for (std::size_t draft = 0; draft < graph.drafts.size(); ++draft)
    for (const Parameter& parameter : graph.drafts[draft].parameters) {
      const bool alone = parameter.values.origin() == Origin::Computed ||
                         (parameter.values.origin() == Origin::Literal &&
                          parameter.learning == Learning::Constant);
      if (alone) {
        add({{draft, &parameter}}, false);
        continue;
      }
      auto& uses = by_root[parameter.values.root_index()];
      if (uses.empty()) order.push_back(parameter.values.root_index());
      uses.push_back({draft, &parameter});
    }
  for (const std::size_t root : order) add_stored(by_root.at(root));
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.uses[0].draft, a.uses[0].parameter) <
           std::pair(b.uses[0].draft, b.uses[0].parameter);
  });
  give_names();
}

std::string ParameterTable::default_name(const Use& use) const {
  return graph_.drafts[use.draft].name + "." + use.parameter->role;
}

std::string ParameterTable::text_of(const Use& use) const {
  return fmt::format("{} of {} ({})", use.parameter->role, graph_.drafts[use.draft].name,
                     fmt::join(use.parameter->shape, ", "));
}

/// Adds the uses of one tensor of the file.
void ParameterTable::add_stored(const std::vector<Use>& uses) {
  const Parameter& first = *uses[0].parameter;
  const std::string& tensor = first.values.tensor();
  const bool own_name = is_given(tensor) && is_describable(first);
  const bool alike = std::all_of(uses.begin(), uses.end(),
                                 [&](const Use& use) { return are_alike(first, *use.parameter); });
  const bool one_layer = std::all_of(uses.begin(), uses.end(),
                                     [&](const Use& use) { return use.draft == uses[0].draft; });
  const bool kept = std::none_of(uses.begin(), uses.end(), [](const Use& use) {
    return use.parameter->learning == Learning::Trained;
  });
  const std::string reader = kept ? "" : graph_.constant_reader(tensor);
  need(reader.empty(),
       fmt::format("the tensor {} is {}, and {} computes with it as a constant, which no layer "
                   "repeats in training; --freeze {} keeps its values",
                   tensor, text_of(uses[0]), reader, tensor));
  if (uses.size() == 1) return add(uses, own_name);
  const bool merged = was_merged(uses);
  if (alike && !merged) return add(uses, own_name);
  const std::string both = text_of(uses[0]) + " and " + text_of(uses.back());
  if (merged)
    need(
        one_layer || first.values.origin() == Origin::Literal,
        fmt::format("the tensor {} is {}: the exporter merged tensors of equal values, so the file "
                    "does not say which layers share a parameter; export with optimize=False or "
                    "dynamo=False",
                    tensor, both));
  else
    need(kept, fmt::format("the tensor {} is {}: layers share a parameter only in one role, shape "
                           "and order; --freeze {} keeps the values instead",
                           tensor, both, tensor));
  for (std::size_t i = 0; i < uses.size(); ++i) add({uses[i]}, own_name && i == 0);
}

/// Whether an exporter gave one tensor to parameters that are not the same, because their values
/// were equal. Values are equal before training: ones and zeros.
bool ParameterTable::was_merged(const std::vector<Use>& uses) const {
  const Parameter& first = *uses[0].parameter;
  if (!is_filled(first.values)) return false;
  for (const Use& use : uses)
    if (use.parameter->role != first.role) return true;
  const bool may_be_initial =  // one number alone tells only if it is a usual first value
      first.values.elements() > 1 || is_filled(first.values, 0.0F) ||
      is_filled(first.values, 1.0F) || is_filled(first.values, 0.25F);
  return may_be_initial && merges_equals_ && !keeps_equals_apart();
}

/// Whether two tensors of the file have equal extents and equal values, each the same everywhere.
bool ParameterTable::keeps_equals_apart() const {
  std::set<std::pair<Extents, float>> seen;
  for (const auto& [name, constant] : initializers_) {
    if (constant.integral() || constant.elements() > 1024 || !is_filled(constant)) continue;
    if (!seen.emplace(constant.extents(), constant.floats()[0]).second) return true;
  }
  return false;
}

void ParameterTable::add(std::vector<Use> uses, bool own_name) {
  entries_.push_back({"", own_name, std::move(uses)});
}

/// Gives every entry a name that no other has. Names of the model come first.
void ParameterTable::give_names() {
  std::set<std::string> taken;
  const auto unique = [&](const std::string& wanted) {
    std::string name = wanted;
    for (int number = 2; !taken.insert(name).second; ++number)
      name = fmt::format("{}_{}", wanted, number);
    return name;
  };
  for (Entry& entry : entries_)
    if (entry.own_name) entry.name = unique(printable(entry.first().values.tensor()));
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (!entry.own_name) entry.name = unique(default_name(entry.uses[0]));
    for (const Use& use : entry.uses) entry_of_[use.parameter] = i;
  }
}

Json ParameterTable::names(std::size_t draft) const {
  Json names = Json::object();
  for (const Parameter& parameter : graph_.drafts[draft].parameters) {
    const Entry& entry = entries_[entry_of_.at(&parameter)];
    if (entry.name != default_name({draft, &parameter})) names[parameter.role] = entry.name;
  }
  return names;
}

Json ParameterTable::described() const {
  Json list = Json::array();
  for (const Entry& entry : entries_) {
    const Parameter& first = entry.first();
    if (first.is_running()) continue;  // the file stores one number per channel, as layers do
    Json described{{"name", entry.name}};
    if (first.learning != Learning::Trained) described["trainable"] = false;
    if (first.learning == Learning::Constant) described["value"] = listed(values_of(first));
    if (entry.own_name) {
      described["stored"] = {{"shape", first.values.root().extents()}};
      if (!first.values.turns().empty()) described["stored"]["transposed"] = true;
      if (first.channels_last) described["stored"]["channels_last"] = true;
    }
    if (described.size() > 1) list.push_back(std::move(described));
  }
  return list;
}

Json ParameterTable::buffers(std::vector<std::string>& too_large) const {
  std::set<std::string> parameters;
  for (const Entry& entry : entries_)
    if (entry.own_name) parameters.insert(entry.first().values.tensor());
  Json list = Json::array();
  for (const auto& [name, constant] : initializers_) {
    if (constant.integral() || !is_given(name) || parameters.contains(name)) continue;
    if (constant.elements() < 1 || constant.elements() > most_in_document ||
        constant.extents().size() > most_stored_axes) {
      too_large.push_back(name);
      continue;
    }
    const std::vector<float> values = constant.floats();
    if (std::any_of(values.begin(), values.end(), [](float each) { return !std::isfinite(each); }))
      too_large.push_back(name);
    else
      list.push_back(
          {{"name", printable(name)}, {"shape", constant.extents()}, {"value", listed(values)}});
  }
  return list;
}

std::vector<ImportedParameter> ParameterTable::rows() const {
  std::vector<ImportedParameter> rows;
  for (const Entry& entry : entries_) {
    const Parameter& first = entry.first();
    ImportedParameter row{entry.name, first.shape, first.learning, first.is_running(), {}};
    for (const Use& use : entry.uses)
      row.uses.push_back({graph_.drafts[use.draft].name, use.parameter->role});
    rows.push_back(std::move(row));
  }
  return rows;
}

ImportedTotals ParameterTable::totals(const Json& buffers) const {
  ImportedTotals totals;
  std::set<std::size_t> unread;
  for (const auto& [name, constant] : initializers_)
    if (!constant.integral()) {
      unread.insert(constant.root_index());
      totals.file += constant.elements();
    }
  totals.other = totals.file;
  for (const Entry& entry : entries_) {
    const Parameter& first = entry.first();
    const std::int64_t elements = elements_of(first.shape);
    (first.is_running()                     ? totals.running
     : first.learning == Learning::Trained  ? totals.trainable
     : first.learning == Learning::Constant ? totals.constant
                                            : totals.frozen) += elements;
    const bool stored = first.values.origin() == Origin::Stored;
    if (stored && unread.erase(first.values.root_index()) > 0) totals.other -= elements;
  }
  for (const Json& buffer : buffers) totals.buffers += elements_of(buffer["shape"].get<Extents>());
  totals.other -= totals.buffers;
  return totals;
}

std::vector<ImportedTensor> ParameterTable::weights(const std::string& file,
                                                    const std::shared_ptr<void>& alive) const {
  std::vector<ImportedTensor> tensors;
  for (const Entry& entry : entries_) {
    if (entry.first().learning == Learning::Constant) continue;
    const auto read = [alive, file, name = entry.name, parameter = entry.first()] {
      try {
        std::vector<float> values = values_of(parameter);
        need(std::ssize(values) == elements_of(parameter.shape),
             fmt::format("expected {} values, found {}", elements_of(parameter.shape),
                         values.size()));
        return values;
      } catch (const Inexpressible& why) {
        throw InputError(file, "", fmt::format("{}: {}", name, why.reason));
      }
    };
    tensors.push_back({entry.name, entry.first().shape, read});
  }
  return tensors;
}

}  // namespace stratplan::interop
